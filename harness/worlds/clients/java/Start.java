import java.io.File;
import org.codehaus.janino.JavaSourceClassLoader;

/** Has Janino compile the other files of a directory before anything runs: its own main takes one file only. */
public final class Start {
    public static void main(String[] arguments) throws Exception {
        File directory = new File(arguments[0]);
        ClassLoader loader = new JavaSourceClassLoader(Start.class.getClassLoader(), new File[] {directory}, "UTF-8");
        String[] files = directory.list();
        for (int index = 0; index < files.length; index++) {
            if (files[index].endsWith(".java")) {
                loader.loadClass(files[index].substring(0, files[index].length() - ".java".length()));
            }
        }
        Class bridge = loader.loadClass("Bridge");
        bridge.getMethod("main", new Class[] {String[].class}).invoke(null, new Object[] {new String[0]});
    }
}
