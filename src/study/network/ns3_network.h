// The network of a machine as ns-3 simulates it, in a child process (ns3/hemiola_ns3.cc).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "machine/machine.h"
#include "study/network/messages.h"

namespace hemiola::study {

struct Ns3Options {
  std::string program;  ///< hemiola-ns3; empty: beside the running program
  Bytes queue{};        ///< that may wait at each output of a switch; 0: all that come (lossless)
  /// A message has arrived when a control packet that its last packet is answered with is back at
  /// the sender: what ASTRA-sim counts over ns-3. False: when its last byte is there.
  bool acknowledged = false;
};

/// Every directed link that messages use is a point-to-point device of ns-3 with the link's rate,
/// latency and bytes per packet; nodes between forward whole packets after their latency. Packets
/// hold a NIC's `nic.mtu`, or 4 KiB on ways without NICs. A NIC's rate holds for the links beside
/// it, and a message through it begins nic.message_time later. Messages take the paths that they
/// take elsewhere (machine/network_routing.h). What a full queue drops is sent again
/// `kRetransmission` later.
class Ns3Network : public MessageNetwork {
 public:
  static constexpr Time kRetransmission = Time::from_ns(100'000);

  /// Failure: there is no hemiola-ns3.
  Ns3Network(const machine::Machine& machine, const Ns3Options& options);
  ~Ns3Network() override;

  /// Failure: ranks without a way to each other.
  void send(std::int32_t number, Time time, const Message& message) override;
  std::optional<Arrival> next() override;

  struct Statistics {
    std::int64_t packets = 0;  ///< times links
    std::int64_t drops = 0;
  };
  Statistics statistics();

 private:
  struct Implementation;
  std::unique_ptr<Implementation> self_;
};

/// What it takes from the machine, for the table: "packets of 4 KiB, 8 links, lossless".
std::string describe(const machine::Machine& machine, const Ns3Options& options);

}  // namespace hemiola::study
