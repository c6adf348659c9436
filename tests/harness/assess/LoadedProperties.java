import java.io.File;
import java.util.Arrays;
import java.util.Properties;
import org.apache.kafka.common.utils.Utils;

/** Prints the properties of each file of a directory as Kafka loads them, in hexadecimal: file, name, value. */
public final class LoadedProperties {
    public static void main(String[] arguments) throws Exception {
        File[] files = new File(arguments[0]).listFiles();
        Arrays.sort(files);
        StringBuilder lines = new StringBuilder();
        for (int i = 0; i < files.length; i++) {
            try {
                Properties properties = Utils.loadProps(files[i].getPath());
                Object[] names = properties.keySet().toArray();
                lines.append(files[i].getName()).append('\n');
                for (int j = 0; j < names.length; j++) {
                    String value = properties.getProperty((String) names[j]);
                    lines.append(files[i].getName()).append(' ').append(hex((String) names[j]));
                    lines.append(' ').append(hex(value)).append('\n');
                }
            } catch (IllegalArgumentException refused) {
                lines.append(files[i].getName()).append(" refused\n");
            }
        }
        System.out.print(lines);
    }

    private static String hex(String text) {
        StringBuilder digits = new StringBuilder("x");
        for (int i = 0; i < text.length(); i++) {
            digits.append(String.format("%04x", new Object[] {Integer.valueOf(text.charAt(i))}));
        }
        return digits.toString();
    }
}
