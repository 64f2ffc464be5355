"""Agents: policies (what acts in an episode) and graders (what ranks the episodes of a group)."""
