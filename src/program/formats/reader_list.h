// The program formats that are read, one line each, asked in this order; included several times,
// hence no guard. For each NAME there is a function `FormatReader NAME_reader()`.
HEMIOLA_READER(mscclpp)
HEMIOLA_READER(msccl)
