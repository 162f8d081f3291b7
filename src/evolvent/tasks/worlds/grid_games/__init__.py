"""Small rule-based games on a grid: a language, its interpreter, a checker, a bot, and what differs between two."""
