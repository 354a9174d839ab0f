/*
 * The kernel's floor of a watch fan-out: accepts connections, answers each with headers once it has spoken, and for every
 * line `go BYTES` on stdin writes that many bytes to every connection with one write() each.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_CONNECTIONS 20000

static int connections[MAX_CONNECTIONS];
static int count = 0;
static char frame[1 << 20];

static void write_all(int fd, const char *data, size_t length) {
  while (length > 0) {
    ssize_t written = write(fd, data, length);
    if (written <= 0) return;
    data += written;
    length -= (size_t)written;
  }
}

int main(void) {
  static const char headers[] = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
  char buffer[65536];
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  int server = socket(AF_INET, SOCK_STREAM, 0);
  signal(SIGPIPE, SIG_IGN);
  memset(frame, 'x', sizeof frame);
  if (bind(server, (struct sockaddr *)&address, sizeof address) != 0 || listen(server, 4096) != 0) return 1;
  getsockname(server, (struct sockaddr *)&address, &size);
  printf("ready %d\n", ntohs(address.sin_port));
  fflush(stdout);
  for (;;) {
    struct pollfd fds[2] = {{.fd = server, .events = POLLIN}, {.fd = 0, .events = POLLIN}};
    poll(fds, 2, -1);
    if (fds[0].revents & POLLIN) {
      int fd = accept(server, NULL, NULL);
      if (fd >= 0 && count < MAX_CONNECTIONS && read(fd, buffer, sizeof buffer) > 0) {
        write_all(fd, headers, sizeof headers - 1);
        connections[count++] = fd;
      }
    }
    if (fds[1].revents & (POLLIN | POLLHUP)) {
      long bytes = 0;
      if (fgets(buffer, sizeof buffer, stdin) == NULL) return 0;
      if (sscanf(buffer, "go %ld", &bytes) == 1 && bytes > 0 && bytes <= (long)sizeof frame)
        for (int i = 0; i < count; i++) write_all(connections[i], frame, (size_t)bytes);
      if (strncmp(buffer, "reset", 5) == 0) {
        for (int i = 0; i < count; i++) close(connections[i]);
        count = 0;
      }
    }
  }
}
