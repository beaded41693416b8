// A chain of two routers, or a tree with three senders and receivers, with a capture at each device.
// Prints each drop in a queue or by an error model, summed by place and flow:
// queue|link NODE DEVICE SRC SPORT DST DPORT PACKETS
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/ppp-header.h"
#include "ns3/traffic-control-module.h"

#include <map>
#include <set>
#include <sstream>

using namespace ns3;

static std::map<std::string, uint64_t> drops;

static std::string Flow(const Ipv4Header& ip, Ptr<Packet> rest)
{
    uint16_t ports[2] = {0, 0};
    if (ip.GetProtocol() == 6) {
        TcpHeader tcp;
        rest->PeekHeader(tcp);
        ports[0] = tcp.GetSourcePort(), ports[1] = tcp.GetDestinationPort();
    } else if (ip.GetProtocol() == 17) {
        UdpHeader udp;
        rest->PeekHeader(udp);
        ports[0] = udp.GetSourcePort(), ports[1] = udp.GetDestinationPort();
    }
    std::ostringstream out;
    out << ip.GetSource() << " " << ports[0] << " " << ip.GetDestination() << " " << ports[1];
    return out.str();
}

static void OnQueueDrop(std::string place, Ptr<const QueueDiscItem> item)
{
    auto of_ip = DynamicCast<const Ipv4QueueDiscItem>(item);
    if (of_ip) drops["queue " + place + " " + Flow(of_ip->GetHeader(), item->GetPacket()->Copy())]++;
}

static void OnLinkDrop(std::string place, Ptr<const Packet> packet)
{
    Ptr<Packet> copy = packet->Copy();
    PppHeader ppp;
    Ipv4Header ip;
    copy->RemoveHeader(ppp);
    copy->RemoveHeader(ip);
    drops["link " + place + " " + Flow(ip, copy)]++;
}

static NodeContainer nodes;
static std::set<uint32_t> routers;
static Ipv4AddressHelper addresses;

static Ipv4InterfaceContainer Link(int a, int b, std::string rate, std::string delay, std::string queue, double loss)
{
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue(rate));
    link.SetChannelAttribute("Delay", StringValue(delay));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1p"));
    NetDeviceContainer devices = link.Install(nodes.Get(a), nodes.Get(b));
    // what a host drops itself passes no capture
    QueueDiscContainer queues;
    for (int end = 0; end < 2; end++) {
        bool is_host = routers.count(devices.Get(end)->GetNode()->GetId()) == 0;
        TrafficControlHelper control;
        control.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", StringValue(is_host ? "1000p" : queue));
        queues.Add(control.Install(devices.Get(end)));
    }
    for (int end = 0; end < 2; end++) {
        std::ostringstream place;
        place << devices.Get(end)->GetNode()->GetId() << " " << devices.Get(end)->GetIfIndex();
        queues.Get(end)->TraceConnectWithoutContext("Drop", MakeBoundCallback(&OnQueueDrop, place.str()));
        if (loss > 0) {
            Ptr<RateErrorModel> errors = CreateObject<RateErrorModel>();
            errors->SetAttribute("ErrorRate", DoubleValue(loss));
            errors->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
            devices.Get(end)->SetAttribute("ReceiveErrorModel", PointerValue(errors));
        }
        devices.Get(end)->TraceConnectWithoutContext("PhyRxDrop", MakeBoundCallback(&OnLinkDrop, place.str()));
    }
    Ipv4InterfaceContainer found = addresses.Assign(devices);
    addresses.NewNetwork();
    return found;
}

static void Tcp(int from, int to, Ipv4Address at, uint16_t port, double start, uint64_t bytes)
{
    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
    sink.Install(nodes.Get(to)).Start(Seconds(0));
    BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(at, port));
    bulk.SetAttribute("MaxBytes", UintegerValue(bytes));
    bulk.Install(nodes.Get(from)).Start(Seconds(start));
}

static void Udp(int from, int to, Ipv4Address at, uint16_t port, std::string rate, double start, double end)
{
    PacketSinkHelper sink("ns3::UdpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
    sink.Install(nodes.Get(to)).Start(Seconds(0));
    OnOffHelper source("ns3::UdpSocketFactory", InetSocketAddress(at, port));
    source.SetConstantRate(DataRate(rate), 400);
    ApplicationContainer apps = source.Install(nodes.Get(from));
    apps.Start(Seconds(start));
    apps.Stop(Seconds(end));
}

int main(int argc, char* argv[])
{
    std::string topology = "chain", prefix = "net";
    uint32_t seed = 1;
    double loss = 0.02;
    CommandLine cmd;
    cmd.AddValue("topology", "chain or tree", topology);
    cmd.AddValue("prefix", "of the captures", prefix);
    cmd.AddValue("seed", "of the run", seed);
    cmd.AddValue("loss", "of the middle link", loss);
    cmd.Parse(argc, argv);
    RngSeedManager::SetSeed(1);
    RngSeedManager::SetRun(seed);
    Config::SetDefault("ns3::PcapFileWrapper::CaptureSize", UintegerValue(68));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1000));
    addresses.SetBase("10.1.1.0", "255.255.255.0");
    double end = 22;
    if (topology == "chain") {
        // 0 sender, 1 and 2 routers, 3 receiver
        routers = {1, 2};
        nodes.Create(4);
        InternetStackHelper().Install(nodes);
        auto first = Link(0, 1, "10Mbps", "1ms", "1000p", 0);
        Link(1, 2, "1Mbps", "10ms", "8p", loss);
        auto last = Link(2, 3, "700kbps", "5ms", "5p", loss / 2);
        Ipv4GlobalRoutingHelper::PopulateRoutingTables();
        Tcp(0, 3, last.GetAddress(1), 5001, 0.1, 400000);
        Tcp(3, 0, first.GetAddress(0), 5002, 0.5, 200000);
        Udp(0, 3, last.GetAddress(1), 6001, "150kbps", 1, 8);
        Udp(0, 3, last.GetAddress(1), 6002, "8kbps", 0.2, end - 0.2);
        Udp(3, 0, first.GetAddress(0), 6003, "8kbps", 0.2, end - 0.2);
    } else {
        // 0, 1, 2 hosts at router 3; 4, 5, 6 hosts at router 8; 7 between the routers
        routers = {3, 7, 8};
        nodes.Create(9);
        InternetStackHelper().Install(nodes);
        Ipv4InterfaceContainer left[3], right[3];
        for (int i = 0; i < 3; i++) left[i] = Link(i, 3, "10Mbps", "1ms", "1000p", 0);
        Link(3, 7, "1500kbps", "4ms", "10p", loss / 2);
        Link(7, 8, "1200kbps", "6ms", "6p", loss);
        for (int i = 0; i < 3; i++) right[i] = Link(8, 4 + i, "500kbps", "2ms", "4p", loss / 4);
        Ipv4GlobalRoutingHelper::PopulateRoutingTables();
        for (int i = 0; i < 3; i++) {
            Tcp(i, 4 + i, right[i].GetAddress(1), 5001, 0.1 + 0.2 * i, 150000);
            Udp(i, 4 + (i + 1) % 3, right[(i + 1) % 3].GetAddress(1), 6001, "60kbps", 1, 9);
            Udp(4 + i, i, left[i].GetAddress(0), 6002, "8kbps", 0.2, end - 0.2);
            Udp(i, 4 + i, right[i].GetAddress(1), 6003, "8kbps", 0.2, end - 0.2);
        }
        // hosts of one router: the others do not see it
        Udp(0, 1, left[1].GetAddress(0), 6004, "50kbps", 1, 9);
        Tcp(5, 2, left[2].GetAddress(0), 5003, 0.7, 120000);
    }
    PointToPointHelper().EnablePcapAll(prefix, false);
    Simulator::Stop(Seconds(end));
    Simulator::Run();
    Simulator::Destroy();
    for (const auto& [place, count] : drops) std::cout << place << " " << count << "\n";
}
