"""`conf/` lies at the top of the repository and is installed as `specfit/conf`; pyproject.toml
cannot add one mapped package to those it finds, so this does."""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["specfit", "specfit.*"]), "specfit.conf"],
    package_dir={"specfit.conf": "conf"},
    package_data={
        "specfit": [
            "weights/**",
            "data/**/*.txt",
            "data/traces/*",
            "report/**/*.css",
            "report/**/*.jinja",
        ],
        "specfit.conf": ["**/*.yaml"],
    },
)
