/*
 * The kernel's floor of a watch fan-out. Answers every GET with headers and keeps the connection; every POST or PATCH on another
 * connection writes one frame to all kept connections with one write() each and is answered then.
 *
 * argv[1]: bytes of a frame. argv[2], where the subject's store is durable and in its process: a file that the frame is written to, and
 * flushed, before anybody is sent it; otherwise empty. Compiled with -DTLS it speaks TLS and sends with one SSL_write() each; argv[3] and
 * argv[4] are then the files of its certificate and key.
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

#ifdef TLS
#include <openssl/ssl.h>
typedef SSL *peer;
#define NOBODY NULL
#define SEND SSL_write
#define RECEIVE SSL_read
static SSL_CTX *context;

static int open_context(const char *certificate, const char *key) {
  context = SSL_CTX_new(TLS_server_method());
  SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM");
  SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384");
  return SSL_CTX_use_certificate_chain_file(context, certificate) == 1 && SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) == 1;
}

static peer meet(int fd) {
  SSL *ssl = SSL_new(context);
  SSL_set_fd(ssl, fd);
  if (SSL_accept(ssl) == 1) return ssl;
  SSL_free(ssl);
  close(fd);
  return NULL;
}

static void leave(peer ssl) {
  close(SSL_get_fd(ssl));
  SSL_free(ssl);
}

static int fd_of(peer ssl) {
  return ssl == NULL ? -1 : SSL_get_fd(ssl);
}
#else
typedef int peer;
#define NOBODY (-1)
#define SEND write
#define RECEIVE read
#define meet(fd) (fd)
#define leave(fd) close(fd)
#define fd_of(fd) (fd)
#endif

#define MAX_CONNECTIONS 20000
#define FILE_BYTES (1 << 22)

static peer watchers[MAX_CONNECTIONS];
static int count = 0;
static char frame[1 << 20];

static void send_all(peer to, const char *data, size_t length) {
  while (length > 0) {
    ssize_t written = SEND(to, data, length);
    if (written <= 0) return;
    data += written;
    length -= (size_t)written;
  }
}

/* A file with all its blocks, so that a write changes nothing but bytes. */
static int open_log(const char *path) {
  int fd = open(path, O_RDWR | O_CREAT, 0600);
  if (fd < 0) return -1;
  for (int at = 0; at < FILE_BYTES; at += (int)sizeof frame)
    if (write(fd, frame, sizeof frame) != (ssize_t)sizeof frame) return -1;
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
  peer writer = NOBODY;
  int log = -1;
  if (bytes > sizeof frame) return 1;
  signal(SIGPIPE, SIG_IGN);
  memset(frame, 'x', sizeof frame);
  if (argc > 2 && argv[2][0] != 0 && (log = open_log(argv[2])) < 0) return 1;
#ifdef TLS
  if (argc < 5 || !open_context(argv[3], argv[4])) return 1;
#endif
  if (bind(server, (struct sockaddr *)&address, sizeof address) != 0 || listen(server, 4096) != 0) return 1;
  getsockname(server, (struct sockaddr *)&address, &size);
  printf("ready %d\n", ntohs(address.sin_port));
  fflush(stdout);
  for (;;) {
    struct pollfd fds[2] = {{.fd = server, .events = POLLIN}, {.fd = fd_of(writer), .events = POLLIN}};
    peer speaker = NOBODY;
    poll(fds, 2, -1);
    if (fds[0].revents & POLLIN) {
      int fd = accept(server, NULL, NULL);
      if (fd >= 0) speaker = meet(fd);
    }
    else if (fds[1].revents != 0) speaker = writer;
    if (speaker == NOBODY) continue;
    if (RECEIVE(speaker, buffer, sizeof buffer) <= 0) {
      leave(speaker);
      if (speaker == writer) writer = NOBODY;
    } else if (buffer[0] == 'G') {
      send_all(speaker, head, sizeof head - 1);
      if (count < MAX_CONNECTIONS) watchers[count++] = speaker;
    } else {
      if (speaker != writer && writer != NOBODY) leave(writer);
      writer = speaker;
      if (log >= 0 && !keep(log, bytes)) return 1;
      for (int i = 0; i < count; i++) send_all(watchers[i], frame, bytes);
      send_all(writer, done, sizeof done - 1);
    }
  }
}
