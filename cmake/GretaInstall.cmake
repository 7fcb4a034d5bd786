# Filled in with the installation rules.
