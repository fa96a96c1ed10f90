// Records flag writes on a GPU, stamped with its clock, as a profile for `hemiola replay`
// (docs/replay.md, "On a device"). One header for CUDA, HIP and, for tests, plain C++; it needs
// nothing else of Hemiola.
//
//   __global__ void kernel(hemiola_recorder recorder, ...) {
//     ...
//     hemiola_record_write(recorder, peer, kFlags, 8 * blockIdx.x, 8, epoch);  // then the store
//     __threadfence_system();
//     flags[peer][blockIdx.x] = epoch;
//   }
//
// Afterwards the host copies `*recorder.count` and the entries, and hemiola_write_profile() writes
// those of all ranks as one file.
#pragma once

#include <stdint.h>
#include <stdio.h>

#if defined(__CUDACC__) || defined(__HIPCC__) || defined(__CUDA__)
#define HEMIOLA_DEVICE __device__ inline
#else
#define HEMIOLA_DEVICE inline
#endif

/// One write. `offset` and `size` in bytes; `clock` in cycles of hemiola_clock().
struct hemiola_record_entry {
  uint64_t clock;
  uint64_t offset;
  int64_t value;
  uint32_t size;
  uint32_t buffer;       ///< index of the names that the host gives
  uint32_t source;       ///< rank
  uint32_t destination;  ///< rank
};

/// In memory of the device; passed to kernels by value. `count` is 0 before; it goes on counting
/// when the entries are full, so that what is lost is known.
struct hemiola_recorder {
  hemiola_record_entry* entries;
  uint32_t* count;
  uint32_t capacity;
  uint32_t source;  ///< the rank of this GPU
};

/// The clock that all SMs, or CUs, of a GPU share. NVIDIA: %globaltimer, nanoseconds (it may advance
/// in steps of up to a microsecond: PTX ISA, "Special Registers"). AMD: wall_clock64(), constant
/// frequency (hipDeviceAttributeWallClockRate, kHz). Plain C++: HEMIOLA_RECORD_CLOCK().
HEMIOLA_DEVICE uint64_t hemiola_clock() {
#if defined(HEMIOLA_RECORD_CLOCK)
  return HEMIOLA_RECORD_CLOCK();
#elif defined(__HIP_DEVICE_COMPILE__) || (defined(__HIPCC__) && !defined(__CUDACC__))
  return (uint64_t)wall_clock64();
#elif defined(__CUDA_ARCH__)
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
#else
  return 0;  // of a host: never called there
#endif
}

HEMIOLA_DEVICE uint32_t hemiola_next_entry(uint32_t* count) {
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
  return atomicAdd(count, 1U);
#else
  return (*count)++;
#endif
}

/// To be called before the store that writes the flag: the time is that of the write's injection.
HEMIOLA_DEVICE void hemiola_record_write(const hemiola_recorder recorder, uint32_t destination,
                                         uint32_t buffer, uint64_t offset, uint32_t size,
                                         int64_t value) {
  const uint32_t at = hemiola_next_entry(recorder.count);
  if (at >= recorder.capacity) return;
  hemiola_record_entry* const entry = recorder.entries + at;
  entry->clock = hemiola_clock();
  entry->offset = offset;
  entry->value = value;
  entry->size = size;
  entry->buffer = buffer;
  entry->source = recorder.source;
  entry->destination = destination;
}

// --- Of the host, after the kernels.

/// What one rank recorded, in memory of the host.
struct hemiola_recording {
  const hemiola_record_entry* entries;
  uint32_t count;        ///< what *recorder.count says
  uint32_t capacity;     ///< of the recorder
  int64_t clock_offset;  ///< cycles to add, so that the clocks of all ranks agree
};
struct hemiola_record_buffer {
  const char* name;  ///< of the program that will be replayed; "@semaphores": writes are additions
  uint64_t bytes;
};

/// Writes a profile whose rows begin at ports of their sources; 0: done. Otherwise nothing or a part
/// is written, and the result says why.
enum hemiola_record_status {
  hemiola_record_done = 0,
  hemiola_record_lost,          ///< a recorder was full: capacity < count
  hemiola_record_unknown_name,  ///< an entry's buffer is none of those given
  hemiola_record_not_written    ///< the file could not be opened or written
};
inline hemiola_record_status hemiola_write_profile(const char* file, uint32_t ranks,
                                                   uint64_t clock_hz,
                                                   const hemiola_record_buffer* buffers,
                                                   uint32_t buffer_count,
                                                   const hemiola_recording* recordings) {
  int64_t origin = INT64_MAX;
  unsigned long long rows = 0;
  for (uint32_t r = 0; r < ranks; ++r) {
    if (recordings[r].count > recordings[r].capacity) return hemiola_record_lost;
    for (uint32_t e = 0; e < recordings[r].count; ++e) {
      const hemiola_record_entry& entry = recordings[r].entries[e];
      if (entry.buffer >= buffer_count) return hemiola_record_unknown_name;
      const int64_t clock = (int64_t)entry.clock + recordings[r].clock_offset;
      if (clock < origin) origin = clock;
      ++rows;
    }
  }
  FILE* const out = fopen(file, "w");
  if (out == NULL) return hemiola_record_not_written;
  fprintf(out, "# hemiola profile 1\n# ranks %u\n# clock %llu Hz\n# origin %lld\n# at port\n", ranks,
          (unsigned long long)clock_hz, (long long)(rows == 0 ? 0 : origin));
  for (uint32_t b = 0; b < buffer_count; ++b)
    fprintf(out, "# buffer %s %llu\n", buffers[b].name, (unsigned long long)buffers[b].bytes);
  fprintf(out,
          "source:rank,destination:rank,time:cycles,kind:kind,buffer:name,offset:bytes,size:bytes,"
          "value:int\n");
  for (uint32_t r = 0; r < ranks; ++r) {
    for (uint32_t e = 0; e < recordings[r].count; ++e) {
      const hemiola_record_entry& entry = recordings[r].entries[e];
      const char* const name = buffers[entry.buffer].name;
      const int adds = name[0] == '@' && name[1] == 's';
      fprintf(out, "%u,%u,%lld,%s,%s,%llu,%u,%lld\n", entry.source, entry.destination,
              (long long)((int64_t)entry.clock + recordings[r].clock_offset),
              adds ? "add" : "write", name, (unsigned long long)entry.offset, entry.size,
              (long long)entry.value);
    }
  }
  fprintf(out, "# end %llu rows\n", rows);
  const int failed = ferror(out);
  return fclose(out) != 0 || failed != 0 ? hemiola_record_not_written : hemiola_record_done;
}
