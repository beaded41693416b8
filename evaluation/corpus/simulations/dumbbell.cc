// One TCP connection over a slow link in ns-3, with the socket's congestion state at each sending.
//
// Writes PREFIX-<node>-<device>.pcap (node 0 sends, 1 and 2 are routers, 3 receives), PREFIX.sent with one line
// for each packet after the SYN that takes sequence numbers (its number, how many it takes, the state), and
// PREFIX.json.
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <fstream>

using namespace ns3;

static std::ofstream g_sent;
static uint32_t g_state = 0;
static uint32_t g_drops = 0;

static void
Sent(Ptr<const Packet> packet, const TcpHeader& header, Ptr<const TcpSocketBase>)
{
    const uint32_t control = (header.GetFlags() & (TcpHeader::SYN | TcpHeader::FIN)) != 0;
    if (packet->GetSize() + control > 0)
    {
        g_sent << header.GetSequenceNumber().GetValue() << " " << packet->GetSize() + control << " "
               << TcpSocketState::TcpCongStateName[g_state] << "\n";
    }
}

static void
StateChanged(TcpSocketState::TcpCongState_t, TcpSocketState::TcpCongState_t now)
{
    g_state = now;
}

static void
Watch(Ptr<BulkSendApplication> sender)
{
    sender->GetSocket()->TraceConnectWithoutContext("Tx", MakeCallback(&Sent));
    sender->GetSocket()->TraceConnectWithoutContext("CongState", MakeCallback(&StateChanged));
}

static void
Dropped(Ptr<const Packet>)
{
    g_drops++;
}

static void
DroppedByDiscipline(Ptr<const QueueDiscItem>)
{
    g_drops++;
}

static void
LosePackets(Ptr<NetDevice> device, double share, int64_t stream)
{
    auto errors = CreateObject<RateErrorModel>();
    errors->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
    errors->SetRate(share);
    errors->AssignStreams(stream);
    device->SetAttribute("ReceiveErrorModel", PointerValue(errors));
    device->TraceConnectWithoutContext("PhyRxDrop", MakeCallback(&Dropped));
}

int
main(int argc, char** argv)
{
    std::string prefix, control = "NewReno", rate = "2Mbps", delay = "15ms";
    uint32_t queue = 20, bytes = 400000, seed = 1;
    double loss = 0, ackLoss = 0;
    bool sack = true, timestamps = true, ecn = false, pacing = false;
    CommandLine cmd(__FILE__);
    cmd.AddValue("prefix", "of the files written", prefix);
    cmd.AddValue("control", "congestion control: NewReno, Cubic, Vegas, ...", control);
    cmd.AddValue("rate", "of the slow link", rate);
    cmd.AddValue("delay", "of the slow link", delay);
    cmd.AddValue("queue", "packets in front of the slow link", queue);
    cmd.AddValue("bytes", "to send", bytes);
    cmd.AddValue("loss", "share of packets lost behind the slow link", loss);
    cmd.AddValue("ackLoss", "share of packets lost on the way back", ackLoss);
    cmd.AddValue("sack", "negotiate SACK", sack);
    cmd.AddValue("timestamps", "negotiate timestamps", timestamps);
    cmd.AddValue("ecn", "negotiate ECN, and mark by RED", ecn);
    cmd.AddValue("pacing", "pace the sender, whatever its congestion control", pacing);
    cmd.AddValue("seed", "run number of the random generator", seed);
    cmd.Parse(argc, argv);

    RngSeedManager::SetRun(seed);
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::Tcp" + control));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1000));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(200000));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(200000));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(sack));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(timestamps));
    Config::SetDefault("ns3::TcpSocketBase::UseEcn", StringValue(ecn ? "On" : "Off"));
    if (pacing)
    {
        Config::SetDefault("ns3::TcpSocketState::EnablePacing", BooleanValue(true));
    }
    Config::SetDefault("ns3::PcapFileWrapper::CaptureSize", UintegerValue(96));

    NodeContainer nodes;
    nodes.Create(4);
    InternetStackHelper().Install(nodes);
    PointToPointHelper fast;
    fast.SetDeviceAttribute("DataRate", StringValue("50Mbps"));
    fast.SetChannelAttribute("Delay", StringValue("1ms"));
    PointToPointHelper slow;
    slow.SetDeviceAttribute("DataRate", StringValue(rate));
    slow.SetChannelAttribute("Delay", StringValue(delay));
    slow.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue(ecn ? "1p" : std::to_string(queue) + "p"));
    if (!ecn)
    {
        // without flow control between device and discipline, the device's own queue overflows
        slow.DisableFlowControl();
    }
    const NetDeviceContainer near = fast.Install(nodes.Get(0), nodes.Get(1));
    const NetDeviceContainer middle = slow.Install(nodes.Get(1), nodes.Get(2));
    const NetDeviceContainer far = fast.Install(nodes.Get(2), nodes.Get(3));
    if (ecn)
    {
        TrafficControlHelper red;
        red.SetRootQueueDisc("ns3::RedQueueDisc", "MinTh", DoubleValue(5), "MaxTh", DoubleValue(15), "MaxSize",
                             StringValue(std::to_string(queue) + "p"), "UseEcn", BooleanValue(true),
                             "LinkBandwidth", StringValue(rate), "LinkDelay", StringValue(delay));
        red.Install(middle).Get(0)->TraceConnectWithoutContext("Drop", MakeCallback(&DroppedByDiscipline));
    }
    PointerValue deviceQueue;
    middle.Get(0)->GetAttribute("TxQueue", deviceQueue);
    deviceQueue.Get<Queue<Packet>>()->TraceConnectWithoutContext("Drop", MakeCallback(&Dropped));
    LosePackets(middle.Get(1), loss, 7);
    LosePackets(middle.Get(0), ackLoss, 8);

    Ipv4AddressHelper addresses("10.77.1.0", "255.255.255.0");
    addresses.Assign(near);
    addresses.NewNetwork();
    addresses.Assign(middle);
    addresses.NewNetwork();
    const Ipv4InterfaceContainer ends = addresses.Assign(far);
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    const InetSocketAddress there(ends.GetAddress(1), 5001);
    BulkSendHelper sending("ns3::TcpSocketFactory", there);
    sending.SetAttribute("MaxBytes", UintegerValue(bytes));
    sending.SetAttribute("SendSize", UintegerValue(1000));
    ApplicationContainer sender = sending.Install(nodes.Get(0));
    sender.Start(Seconds(0.1));
    Simulator::Schedule(Seconds(0.1) + NanoSeconds(1), &Watch, DynamicCast<BulkSendApplication>(sender.Get(0)));
    const ApplicationContainer sink = PacketSinkHelper("ns3::TcpSocketFactory", there).Install(nodes.Get(3));

    g_sent.open(prefix + ".sent");
    slow.EnablePcapAll(prefix);
    Simulator::Stop(Seconds(60));
    Simulator::Run();
    std::ofstream(prefix + ".json") << "{\"received\": " << DynamicCast<PacketSink>(sink.Get(0))->GetTotalRx()
                                    << ", \"dropped\": " << g_drops << "}\n";
    Simulator::Destroy();
    return 0;
}
