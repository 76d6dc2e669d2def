"""Common parts of resizes at user, resource and bank: questions, answers and journal records."""
