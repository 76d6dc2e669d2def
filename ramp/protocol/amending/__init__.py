"""What user, resource and bank have in common where a bought slot changes its size: questions, answers, memory."""
