#include "program/bind/bound.h"
#include "sim/result/options.h"
#include "sim/result/profile.h"
#include "sim/result/result.h"

namespace hemiola::sim {

std::string_view name_of(Engine engine) {
  switch (engine) {
    case Engine::reference:
      return "reference";
    case Engine::line:
      return "line";
    case Engine::fluid:
      return "fluid";
    case Engine::sampled:
      return "sampled";
  }
  return "";
}

std::string_view name_of(ProfileKind kind) {
  switch (kind) {
    case ProfileKind::write:
      return "write";
    case ProfileKind::add:
      return "add";
    case ProfileKind::packet:
      return "packet";
    case ProfileKind::read:
      return "read";
    case ProfileKind::response:
      return "response";
    case ProfileKind::acknowledgement:
      return "acknowledgement";
    case ProfileKind::burst:
      return "burst";
  }
  return "";
}

std::string_view name_of(Launch launch) {
  return launch == Launch::graph ? "graph" : "stream";
}

std::string_view name_of(Reason reason) {
  switch (reason) {
    case Reason::launch:
      return "launch";
    case Reason::dispatch:
      return "dispatch";
    case Reason::issue:
      return "issue";
    case Reason::compute:
      return "compute";
    case Reason::barrier:
      return "barrier";
    case Reason::l1:
      return "l1";
    case Reason::noc:
      return "noc";
    case Reason::l2:
      return "l2";
    case Reason::msc:
      return "msc";
    case Reason::hbm:
      return "hbm";
    case Reason::io:
      return "io";
    case Reason::link:
      return "link";
    case Reason::switch_:
      return "switch";
    case Reason::nic:
      return "nic";
    case Reason::dma:
      return "dma";
    case Reason::proxy:
      return "proxy";
    case Reason::poll:
      return "poll";
    case Reason::fence:
      return "fence";
    case Reason::software:
      return "software";
    case Reason::peer:
      return "peer";
    case Reason::skew:
      return "skew";
    case Reason::finished:
      return "finished";
    case Reason::count:
      break;
  }
  return "";
}

std::string_view name_of(program::StreamItem::Kind kind) {
  switch (kind) {
    case program::StreamItem::Kind::kernel:
      return "kernel";
    case program::StreamItem::Kind::engine:
      return "copies";
    case program::StreamItem::Kind::host:
      return "host function";
    case program::StreamItem::Kind::event_record:
      return "event record";
    case program::StreamItem::Kind::event_wait:
      return "event wait";
    case program::StreamItem::Kind::until:
      return "until";
    case program::StreamItem::Kind::launch_begin:
      return "launch begins";
    case program::StreamItem::Kind::launch_end:
      return "launch ends";
  }
  return "";
}

}  // namespace hemiola::sim
