"""Many runs: performed, judged, compared, and on a page."""
