"""The checkers on Spark: finding histories, planning tasks, the session, the job."""
