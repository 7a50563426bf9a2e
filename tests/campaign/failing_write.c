/* Preloaded into a program: the n-th change to a file fails as on a full disk, and so does every later one.
 *
 *   LD_PRELOAD=libfailing_write.so FAIL_WRITE=n [FAIL_COUNT=FILE] program ...
 *
 * Writes to terminals, pipes and sockets do not count. FAIL_COUNT gets the number of changes when the program ends. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_long changes;

static int fails(int fd) {
  struct stat info;
  if (fd >= 0 && (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || fd == 1 || fd == 2)) return 0;
  const char* at = getenv("FAIL_WRITE");
  const long number = atomic_fetch_add(&changes, 1) + 1;
  if (at == NULL || atol(at) == 0 || number < atol(at)) return 0;
  errno = ENOSPC;
  return 1;
}

#define REAL(type, name, ...) ((type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name))

ssize_t write(int fd, const void* data, size_t size) {
  return fails(fd) ? -1 : REAL(ssize_t, "write", int, const void*, size_t)(fd, data, size);
}
ssize_t writev(int fd, const struct iovec* parts, int count) {
  return fails(fd) ? -1 : REAL(ssize_t, "writev", int, const struct iovec*, int)(fd, parts, count);
}
ssize_t pwrite(int fd, const void* data, size_t size, off_t at) {
  return fails(fd) ? -1 : REAL(ssize_t, "pwrite", int, const void*, size_t, off_t)(fd, data, size, at);
}
ssize_t pwrite64(int fd, const void* data, size_t size, off64_t at) {
  return fails(fd) ? -1 : REAL(ssize_t, "pwrite64", int, const void*, size_t, off64_t)(fd, data, size, at);
}
int fsync(int fd) { return fails(fd) ? -1 : REAL(int, "fsync", int)(fd); }
int fdatasync(int fd) { return fails(fd) ? -1 : REAL(int, "fdatasync", int)(fd); }
int ftruncate(int fd, off_t size) { return fails(fd) ? -1 : REAL(int, "ftruncate", int, off_t)(fd, size); }
int ftruncate64(int fd, off64_t size) { return fails(fd) ? -1 : REAL(int, "ftruncate64", int, off64_t)(fd, size); }
int fallocate(int fd, int mode, off_t at, off_t size) {
  return fails(fd) ? -1 : REAL(int, "fallocate", int, int, off_t, off_t)(fd, mode, at, size);
}
int mkdirat(int fd, const char* path, mode_t mode) {
  return fails(-1) ? -1 : REAL(int, "mkdirat", int, const char*, mode_t)(fd, path, mode);
}
int rename(const char* from, const char* to) {
  return fails(-1) ? -1 : REAL(int, "rename", const char*, const char*)(from, to);
}
int linkat(int from_fd, const char* from, int to_fd, const char* to, int flags) {
  return fails(-1) ? -1 : REAL(int, "linkat", int, const char*, int, const char*, int)(from_fd, from, to_fd, to, flags);
}

__attribute__((destructor)) static void tell(void) {
  const char* path = getenv("FAIL_COUNT");
  if (path == NULL) return;
  const long all = atomic_load(&changes);
  FILE* file = fopen(path, "w");
  if (file == NULL) return;
  fprintf(file, "%ld\n", all);
  fclose(file);
}
