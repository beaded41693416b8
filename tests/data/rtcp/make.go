// Make tests/data/rtcp/pion.json: RTCP as pion's receivers write it. With Go and its module proxy:
//
//	go mod init witness && go get github.com/pion/interceptor@v0.1.51 && go run make.go > pion.json
//
// Slots of 10 ms: each tenth has a report, the others a packet of media each. A packet takes 30 ms to the
// receiver, a report 20 ms back; `lost` do not come and `marked` come with CE.
package main

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"time"

	"github.com/pion/interceptor/pkg/ccfb"
	"github.com/pion/interceptor/pkg/twcc"
	"github.com/pion/rtcp"
)

const (
	media    = 0x11223344
	receiver = 0x55667788
	first    = 65450
	slots    = 300
	there    = 30 * time.Millisecond
	back     = 20 * time.Millisecond
)

type report struct {
	Slot     int    `json:"slot"`
	Hex      string `json:"hex"`
	Received int    `json:"received"`
	Told     int    `json:"told"`
	Highest  uint16 `json:"highest"`
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func text(packet rtcp.Packet) string {
	bytes, err := packet.Marshal()
	check(err)
	return hex.EncodeToString(bytes)
}

func main() {
	lost := map[int]bool{80: true, 81: true, 150: true, 233: true}
	marked := map[int]bool{200: true}
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	each, wide := ccfb.NewRecorder(), twcc.NewRecorder(receiver)
	var eachReports, wideReports []report
	arrivals := []struct {
		at     time.Time
		number int
	}{}
	number := 0
	for slot := range slots {
		now := begin.Add(time.Duration(slot) * 10 * time.Millisecond)
		if slot%10 != 9 {
			if !lost[number] {
				arrivals = append(arrivals, struct {
					at     time.Time
					number int
				}{now.Add(there), number})
			}
			number++
			continue
		}
		made := now.Add(-back)
		for len(arrivals) > 0 && !arrivals[0].at.After(made) {
			came := arrivals[0]
			arrivals = arrivals[1:]
			seq := uint16((first + came.number) % 65536)
			var ecn uint8
			if marked[came.number] {
				ecn = 3
			}
			each.AddPacket(came.at, media, seq, ecn)
			wide.Record(media, seq, came.at.UnixMicro())
		}
		told := each.BuildReport(made, 1200)
		told.SenderSSRC = receiver
		row := report{Slot: slot, Hex: text(told)}
		for _, block := range told.ReportBlocks {
			for at, metric := range block.MetricBlocks {
				row.Told++
				if metric.Received {
					row.Received++
					row.Highest = block.BeginSequence + uint16(at)
				}
			}
		}
		eachReports = append(eachReports, row)
		for _, packet := range wide.BuildFeedbackPacket() {
			feedback := packet.(*rtcp.TransportLayerCC)
			wideReports = append(wideReports, report{
				Slot: slot, Hex: text(feedback), Received: len(feedback.RecvDeltas),
				Told: int(feedback.PacketStatusCount), Highest: feedback.BaseSequenceNumber + feedback.PacketStatusCount - 1,
			})
		}
	}
	extended := func(blocks ...rtcp.ReportBlock) string {
		return text(&rtcp.ExtendedReport{SenderSSRC: receiver, Reports: blocks})
	}
	document := map[string]any{
		"by": "github.com/pion/rtcp v1.2.20, github.com/pion/interceptor v0.1.51", "first": first,
		"lost": []int{80, 81, 150, 233}, "marked": []int{200},
		"rfc8888": eachReports, "twcc": wideReports,
		"extended": map[string]string{
			"losses": extended(&rtcp.LossRLEReportBlock{SSRC: media, BeginSeq: 100, EndSeq: 140,
				// nine came, two did not; of fifteen all but the second; the rest came
				Chunks: []rtcp.Chunk{0x4009, 0x0002, 0x8000 | 0x5fff, 0x400e, 0}}),
			"summary": extended(&rtcp.StatisticsSummaryReportBlock{LossReports: true, DuplicateReports: true, JitterReports: true,
				SSRC: media, BeginSeq: 100, EndSeq: 200, LostPackets: 7, DupPackets: 3,
				MinJitter: 1, MaxJitter: 90, MeanJitter: 16, DevJitter: 5}),
			"voice": extended(&rtcp.VoIPMetricsReportBlock{SSRC: media, LossRate: 32, DiscardRate: 5, RoundTripDelay: 140,
				EndSystemDelay: 60, RFactor: 80, MOSLQ: 41, MOSCQ: 40}),
			// 100.5 s of NTP's era, and its echo after 50 ms
			"time": extended(&rtcp.ReceiverReferenceTimeReportBlock{NTPTimestamp: 100<<32 | 1<<31}),
			"echo": text(&rtcp.ExtendedReport{SenderSSRC: media, Reports: []rtcp.ReportBlock{
				&rtcp.DLRRReportBlock{Reports: []rtcp.DLRRReport{{SSRC: receiver, LastRR: 100<<16 | 1<<15, DLRR: 65536 / 20}}}}}),
		},
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", " ")
	check(encoder.Encode(document))
}
