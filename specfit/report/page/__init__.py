"""results/report.html: one template, its style, and the values that the template is given."""
