module tickwheel/bench/sched

go 1.19
