append()
return done()
