"""The Gymnasium environments: one episode (`repo_edit`) and groups of them (`group_vector`)."""
