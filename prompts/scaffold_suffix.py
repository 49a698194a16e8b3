except Exception as error:
    report(error)
