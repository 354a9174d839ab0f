/*
 * The kernel's floor of a watch fan-out. Answers every GET with headers and keeps the connection; every POST or PATCH on another
 * connection writes one frame to all kept connections with one write() each and is answered then.
 *
 * argv[1]: bytes of a frame. argv[2], where the subject's store is durable and in its process: a file that the frame is written to, and
 * flushed, before anybody is sent it.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_CONNECTIONS 20000
#define FILE_BYTES (1 << 22)

static int watchers[MAX_CONNECTIONS];
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

/* A file with all its blocks, so that a write changes nothing but bytes. */
static int open_log(const char *path) {
  int fd = open(path, O_RDWR | O_CREAT, 0600);
  if (fd < 0) return -1;
  for (int at = 0; at < FILE_BYTES; at += (int)sizeof frame) write_all(fd, frame, sizeof frame);
  return fsync(fd) == 0 ? fd : -1;
}

/* The least that a durable write costs. */
static int keep(int fd, size_t bytes) {
  static off_t at = 0;
  if (at + (off_t)bytes > FILE_BYTES) at = 0;
  if (pwrite(fd, frame, bytes, at) != (ssize_t)bytes || fdatasync(fd) != 0) return 0;
  at += (off_t)bytes;
  return 1;
}

int main(int argc, char **argv) {
  static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
  static const char done[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
  char buffer[65536];
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  size_t bytes = argc > 1 ? strtoul(argv[1], NULL, 10) : 1560;
  int server = socket(AF_INET, SOCK_STREAM, 0);
  int writer = -1;
  int log = -1;
  if (bytes > sizeof frame) return 1;
  signal(SIGPIPE, SIG_IGN);
  memset(frame, 'x', sizeof frame);
  if (argc > 2 && (log = open_log(argv[2])) < 0) return 1;
  if (bind(server, (struct sockaddr *)&address, sizeof address) != 0 || listen(server, 4096) != 0) return 1;
  getsockname(server, (struct sockaddr *)&address, &size);
  printf("ready %d\n", ntohs(address.sin_port));
  fflush(stdout);
  for (;;) {
    struct pollfd fds[2] = {{.fd = server, .events = POLLIN}, {.fd = writer, .events = POLLIN}};
    int speaker = -1;
    poll(fds, 2, -1);
    if (fds[0].revents & POLLIN) speaker = accept(server, NULL, NULL);
    else if (fds[1].revents != 0) speaker = writer;
    if (speaker < 0) continue;
    if (read(speaker, buffer, sizeof buffer) <= 0) {
      close(speaker);
      if (speaker == writer) writer = -1;
    } else if (buffer[0] == 'G') {
      write_all(speaker, head, sizeof head - 1);
      if (count < MAX_CONNECTIONS) watchers[count++] = speaker;
    } else {
      if (speaker != writer && writer >= 0) close(writer);
      writer = speaker;
      if (log >= 0 && !keep(log, bytes)) return 1;
      for (int i = 0; i < count; i++) write_all(watchers[i], frame, bytes);
      write_all(writer, done, sizeof done - 1);
    }
  }
}
