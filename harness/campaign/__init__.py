"""A campaign: every run of a plan in worker processes, one check of all histories, one report; and runs done again."""
