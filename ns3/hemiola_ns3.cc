// hemiola-ns3: messages over a network of ns-3's point-to-point devices, for `hemiola run --network
// ns-3` (docs/ns3.md). A process of its own, because a process has one ns-3 simulator.
//
// Lines on standard input, answered on standard output; numbers only, times in fs:
//
//   nodes N RTO                     first of all; RTO: when what was dropped is sent again
//   node NODE LATENCY               what a packet waits before it leaves NODE again
//   link ID FROM TO RATE LATENCY QUEUE MAX_PAYLOAD HEADER CONTROL
//                                   one direction; bytes per second (0: ideal); QUEUE in bytes that
//                                   may wait (0: all that come)
//   path ID LINK...
//   send ID TIME BYTES MTU PATH...  packet i takes path i modulo their number
//   run                             until a message has arrived: `done TIME ID`; or `idle`
//   stats                           `stats PACKETS DROPS`
//
// A sender gives a packet to its first link when that has nothing to send, message by message in
// turn. Sizes on a wire are those of Hemiola's LinkClass::wire_bytes().
#include <ns3/core-module.h>
#include <ns3/drop-tail-queue.h>
#include <ns3/network-module.h>
#include <ns3/point-to-point-channel.h>
#include <ns3/point-to-point-net-device.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <iostream>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

using ns3::Ptr;
using ns3::Simulator;
using Integer = std::int64_t;

constexpr Integer kPppHeader = 2;  // ns-3 adds it to every packet: it is a part of ours
constexpr std::uint64_t kIdealBitsPerSecond = 1'000'000'000'000'000;

ns3::Time time_of(Integer fs) {
  return ns3::FemtoSeconds(fs);
}

struct Packet {
  std::size_t message = 0;
  Integer payload = 0;
  std::size_t path = 0;
  std::size_t hop = 0;
};

struct Message {
  Integer id = 0;
  Integer left = 0;  // packets that have not arrived
};

/// Packets of a message that have not been given to their first link: every `step`-th.
struct Share {
  std::size_t message = 0, path = 0;
  Integer next = 0, step = 1, packets = 0, bytes = 0, mtu = 0;
};

struct Link {
  Ptr<ns3::PointToPointNetDevice> from, to;
  int target = 0;
  Integer max_payload = 1, header = 0, control = 0;
  std::deque<Share> shares;  // of senders
  std::deque<Packet> again;  // dropped, and sent once more
  bool is_asked = false;    // inject() is on its way
  bool is_sending = false;  // a packet is on the wire
  Integer wire_bytes(Integer payload) const {
    if (payload == 0) return control > 0 ? control : header;
    return payload + (payload + max_payload - 1) / max_payload * header;
  }
};

class Network {
 public:
  void command(const std::string& line) {
    std::istringstream words(line);
    std::string verb;
    words >> verb;
    if (verb == "nodes") return nodes(words);
    if (verb == "node") return node(words);
    if (verb == "link") return link(words);
    if (verb == "path") return path(words);
    if (verb == "send") return send(words);
    if (verb == "run") return run();
    if (verb == "stats") {
      std::cout << "stats " << packets_ << ' ' << drops_ << std::endl;
      return;
    }
    std::cout << "error unknown command " << verb << std::endl;
  }

 private:
  void nodes(std::istringstream& words) {
    std::size_t count = 0;
    words >> count >> rto_;
    latencies_.assign(count, 0);
    nodes_.Create(static_cast<std::uint32_t>(count));
  }

  void node(std::istringstream& words) {
    std::size_t number = 0;
    words >> number;
    words >> latencies_.at(number);
  }

  void link(std::istringstream& words) {
    Integer id = 0, rate = 0, latency = 0, queue = 0;
    int from = 0, to = 0;
    Link link;
    words >> id >> from >> to >> rate >> latency >> queue >> link.max_payload >> link.header >>
        link.control;
    link.target = to;
    const auto number = links_.size();
    numbers_[id] = number;
    auto channel = ns3::CreateObject<ns3::PointToPointChannel>();
    channel->SetAttribute("Delay", ns3::TimeValue(time_of(latency)));
    for (auto* device : {&link.from, &link.to}) {
      *device = ns3::CreateObject<ns3::PointToPointNetDevice>();
      (*device)->SetAddress(ns3::Mac48Address::Allocate());
      (*device)->SetDataRate(ns3::DataRate(rate == 0 ? kIdealBitsPerSecond
                                                     : static_cast<std::uint64_t>(rate) * 8));
      auto waiting = ns3::CreateObject<ns3::DropTailQueue<ns3::Packet>>();
      waiting->SetMaxSize(queue == 0
                              ? ns3::QueueSize(ns3::QueueSizeUnit::PACKETS, 0xffffffffU)
                              : ns3::QueueSize(ns3::QueueSizeUnit::BYTES,
                                               static_cast<std::uint32_t>(queue)));
      (*device)->SetQueue(waiting);
    }
    nodes_.Get(static_cast<std::uint32_t>(from))->AddDevice(link.from);
    nodes_.Get(static_cast<std::uint32_t>(to))->AddDevice(link.to);
    link.from->Attach(channel);
    link.to->Attach(channel);
    link.from->GetQueue()->TraceConnectWithoutContext("Drop",
                                                      ns3::MakeCallback(&Network::dropped, this));
    link.from->TraceConnectWithoutContext(
        "PhyTxEnd", ns3::Callback<void, Ptr<const ns3::Packet>>(
                        [this, number](Ptr<const ns3::Packet>) {
                          links_[number].is_sending = false;
                          ask(number);
                        }));
    link.from->TraceConnectWithoutContext(
        "PhyTxBegin", ns3::Callback<void, Ptr<const ns3::Packet>>([this, number](
                          Ptr<const ns3::Packet>) { links_[number].is_sending = true; }));
    link.to->SetReceiveCallback(
        ns3::MakeCallback(&Network::received, this));
    links_.push_back(std::move(link));
  }

  void path(std::istringstream& words) {
    Integer id = 0, link = 0;
    words >> id;
    std::vector<std::size_t> links;
    while (words >> link) links.push_back(numbers_.at(link));
    path_numbers_[id] = paths_.size();
    paths_.push_back(std::move(links));
  }

  void send(std::istringstream& words) {
    Integer id = 0, time = 0, bytes = 0, mtu = 1, path = 0;
    words >> id >> time >> bytes >> mtu;
    std::vector<std::size_t> ways;
    while (words >> path) ways.push_back(path_numbers_.at(path));
    const Integer packets = std::max<Integer>(1, (bytes + mtu - 1) / mtu);
    const std::size_t message = messages_.size();
    messages_.push_back({id, packets});
    const auto begin = time_of(time) - Simulator::Now();
    const auto step = static_cast<Integer>(ways.size());
    for (Integer w = 0; w < std::min(step, packets); ++w) {
      const Share share{message, ways[static_cast<std::size_t>(w)], w, step, packets, bytes, mtu};
      Simulator::Schedule(begin, [this, share] {
        const std::size_t first = paths_[share.path].front();
        links_[first].shares.push_back(share);
        ask(first);
      });
    }
  }

  void run() {
    arrived_ = -1;
    Simulator::Run();  // goes on where it was stopped
    if (arrived_ < 0)
      std::cout << "idle" << std::endl;
    else
      std::cout << "done " << Simulator::Now().GetFemtoSeconds() << ' ' << arrived_ << std::endl;
  }

  /// The link may take a packet, once all of this instant's events that are under way are over.
  void ask(std::size_t number) {
    Link& link = links_[number];
    if (link.is_asked || (link.shares.empty() && link.again.empty())) return;
    link.is_asked = true;
    Simulator::ScheduleNow([this, number] { inject(number); });
  }

  void inject(std::size_t number) {
    Link& link = links_[number];
    link.is_asked = false;
    // One that is sending asks again when it is through.
    if (link.is_sending || !link.from->GetQueue()->IsEmpty()) return;
    if (!link.again.empty()) {
      const Packet packet = link.again.front();
      link.again.pop_front();
      return put(number, packet);
    }
    if (link.shares.empty()) return;
    Share share = link.shares.front();
    link.shares.pop_front();
    const Integer payload =
        share.bytes == 0 ? 0 : std::min(share.mtu, share.bytes - share.next * share.mtu);
    const Packet packet{share.message, payload, share.path, 0};
    share.next += share.step;
    if (share.next < share.packets) link.shares.push_back(share);
    put(number, packet);
  }

  void put(std::size_t number, const Packet& packet) {
    Link& link = links_[number];
    const Integer size = std::max<Integer>(0, link.wire_bytes(packet.payload) - kPppHeader);
    const auto made = ns3::Create<ns3::Packet>(static_cast<std::uint32_t>(size));
    on_way_[made->GetUid()] = packet;
    ++packets_;
    link.from->Send(made, link.to->GetAddress(), 0x0800);
  }

  bool received(Ptr<ns3::NetDevice> device, Ptr<const ns3::Packet> content, std::uint16_t,
                const ns3::Address&) {
    const auto found = on_way_.find(content->GetUid());
    Packet packet = found->second;
    on_way_.erase(found);
    const std::vector<std::size_t>& path = paths_[packet.path];
    const int place = links_[path[packet.hop]].target;
    if (++packet.hop == path.size()) {
      Message& message = messages_[packet.message];
      if (--message.left > 0) return true;
      arrived_ = message.id;
      Simulator::Stop();
      return true;
    }
    Simulator::Schedule(time_of(latencies_[static_cast<std::size_t>(place)]),
                        [this, number = path[packet.hop], packet] { put(number, packet); });
    return true;
  }

  void dropped(Ptr<const ns3::Packet> content) {
    const auto found = on_way_.find(content->GetUid());
    Packet packet = found->second;
    on_way_.erase(found);
    ++drops_;
    packet.hop = 0;
    Simulator::Schedule(time_of(rto_), [this, packet] {
      const std::size_t first = paths_[packet.path].front();
      links_[first].again.push_back(packet);
      ask(first);
    });
  }

  ns3::NodeContainer nodes_;
  std::vector<Integer> latencies_;
  std::vector<Link> links_;
  std::unordered_map<Integer, std::size_t> numbers_, path_numbers_;
  std::vector<std::vector<std::size_t>> paths_;
  std::vector<Message> messages_;
  std::unordered_map<std::uint64_t, Packet> on_way_;
  Integer rto_ = 0, arrived_ = -1, packets_ = 0, drops_ = 0;
};

}  // namespace

int main() {
  std::ios::sync_with_stdio(false);
  ns3::Time::SetResolution(ns3::Time::FS);
  Network network;
  std::string line;
  while (std::getline(std::cin, line)) network.command(line);
  Simulator::Destroy();
  return 0;
}
