"""A program with one wrong line: there is no such mode of permissions."""

import linkspan

if __name__ == "__main__":
    linkspan.run("fix the test", permissions="everything")
