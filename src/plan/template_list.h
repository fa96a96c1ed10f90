// The built-in algorithms, one line each, by collective; included several times, hence no guard.
// For each NAME there is a function `TemplateInfo NAME()` that describes and makes it.
HEMIOLA_TEMPLATE(all_reduce_ring)
HEMIOLA_TEMPLATE(all_reduce_two_shot)
HEMIOLA_TEMPLATE(all_reduce_one_shot)
HEMIOLA_TEMPLATE(all_gather_direct)
HEMIOLA_TEMPLATE(all_gather_ring)
HEMIOLA_TEMPLATE(reduce_scatter_direct)
HEMIOLA_TEMPLATE(reduce_scatter_ring)
HEMIOLA_TEMPLATE(all_to_all_direct)
HEMIOLA_TEMPLATE(broadcast_ring)
