module hapax/bench/peers/go

go 1.19
