// The arbitration policies besides fifo, one line each; included several times, hence no guard. A
// policy NAME is what --set takes (noc.arbitration=NAME), and pick_NAME of sim/model/arbitration.h.
HEMIOLA_ARBITRATION(data_first)
HEMIOLA_ARBITRATION(control_first)
HEMIOLA_ARBITRATION(fair)
