#include "program/bind/touched.h"

namespace hemiola::program {

Touched touched_by(const Frame& frame, int own_rank) {
  Touched touched;
  const std::vector<Buffer>& buffers = frame.program->buffers;
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    if (buffers[b].alias >= 0) continue;
    std::int64_t& sum = buffers[b].kind == BufferKind::fifo      ? touched.fifos
                        : buffers[b].kind == BufferKind::scratch ? touched.scratch
                                                                 : touched.given;
    sum += frame.memory_bytes(static_cast<std::int32_t>(b), own_rank);
  }
  return touched;
}

}  // namespace hemiola::program
