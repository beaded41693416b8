/* The least that a program built on libpcap can do: read every packet and count.
 * `count LIBRARY CAPTURE`: the library is loaded by name and its prototypes stand here, so that neither
 * headers nor a linker's idea of where libraries are is needed. */
#include <dlfcn.h>
#include <stdio.h>
#include <sys/time.h>

struct packet_header {
    struct timeval time;
    unsigned captured, wire;
};
typedef struct pcap pcap_t;
typedef pcap_t *open_offline(const char *path, char *error);
typedef int next_ex(pcap_t *capture, struct packet_header **header, const unsigned char **data);

int main(int argc, char **argv) {
    char error[256];
    struct packet_header *header;
    const unsigned char *data;
    unsigned long packets = 0, bytes = 0;
    if (argc != 3) return 2;
    void *library = dlopen(argv[1], RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 3;
    }
    open_offline *open = (open_offline *)dlsym(library, "pcap_open_offline");
    next_ex *next = (next_ex *)dlsym(library, "pcap_next_ex");
    pcap_t *capture = open(argv[2], error);
    if (!capture) {
        fprintf(stderr, "%s\n", error);
        return 3;
    }
    while (next(capture, &header, &data) == 1) {
        packets++;
        bytes += header->wire;
    }
    printf("%lu packets %lu bytes\n", packets, bytes);
    return 0;
}
