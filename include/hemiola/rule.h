/* Which schedule overlaps a product with its collective best, by a rule: for frameworks and runtimes.
 *
 * A C interface, which C++ may use as well. A rule is opened once; a pick costs a microsecond
 * or two and takes no lock, so that several threads may pick from one rule. Rules, features
 * and families: docs/explore.md. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hemiola_rule hemiola_rule;

enum hemiola_operator_kind {
  HEMIOLA_AG_GEMM = 0,
  HEMIOLA_GEMM_RS = 1,
  HEMIOLA_GEMM_AR = 2,
  HEMIOLA_A2A_GEMM = 3,
  HEMIOLA_GEMM_A2A = 4
};

/* Sizes are those of C[m, n] = A[m, k] B[k, n] over all GPUs of the rule's machine. */
typedef struct hemiola_operator {
  int32_t kind;      /* hemiola_operator_kind */
  int32_t gathers_b; /* ag-gemm: 1 where B is gathered */
  int64_t m, n, k;
} hemiola_operator;

typedef struct hemiola_pick {
  const char* family; /* "1D hetero fused", "serial"; lives as long as the program */
  int64_t degree;     /* steps; 1 where the family has none */
} hemiola_pick;

/* `rule`: "analytic", the name of a shipped one ("tree", "paper"), or a file. `machine`: a name or a
 * file; `ranks` of it, 0: all. `dtype`: "bf16", "fp8_e4m3", ... NULL where something is wrong: then
 * `error` (of `error_size` bytes, ended by a zero; NULL: nobody wants it) says what. */
hemiola_rule* hemiola_rule_open(const char* rule, const char* machine, int32_t ranks,
                                const char* dtype, char* error, size_t error_size);
/* 0, or -1 for an operator whose sizes the ranks do not divide: then `pick` is serial. */
int hemiola_rule_pick(const hemiola_rule* rule, const hemiola_operator* op, hemiola_pick* pick);
void hemiola_rule_close(hemiola_rule* rule);

#ifdef __cplusplus
}
#endif
