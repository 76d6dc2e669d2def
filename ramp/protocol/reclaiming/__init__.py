"""What user, resource and bank have in common where a seller takes cores back by right: questions, answers, memory."""
