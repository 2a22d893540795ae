/* SPDX-License-Identifier: MIT
 *
 * The lock lies on a file of its own, beside the store's file: SQLite loses its locks when somebody else closes
 * its file. It belongs to the open file (F_OFD_SETLK, fcntl(2)), so two stores of one process exclude each
 * other too, and the kernel ends it with the process, however that dies. The file holds the number of the
 * process for people, and which queues it runs. It stays when the lock is gone: who removed it could remove the
 * lock of the next. If somebody removes it all the same, another process can lock the next file of this name.
 * So the holder of the lock looks again and again whether its file is there.
 */
#include "lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void name_lock(struct tw__store_db *db, char path[TW__STORE_PATH])
{
    snprintf(path, TW__STORE_PATH, "%s-tickwheel", sqlite3_db_filename(db->db, "main"));
}

static int system_failed(struct tw__store_db *db, const char *path)
{
    int number = errno;
    return tw__store_db_refuse(db, tw__store_errno_error(number), "%.400s: %s", path, strerror(number));
}

static int held_by_other(struct tw__store_db *db, int fd)
{
    char text[24 + TW__STORE_RUN_TEXT] = "", shown[TW__STORE_RUN_TEXT + 4], *queues;
    if (pread(fd, text, sizeof text - 1, 0) < 1) /* it has not written it yet */
        return tw__store_db_refuse(db, TW_EBUSY, "another process runs the tasks of this file");
    long process = strtol(text, &queues, 10);
    queues += *queues == '\n';
    tw__store_show(shown, sizeof shown, queues, strcspn(queues, "\n"));
    if (shown[0] == '\0')
        return tw__store_db_refuse(db, TW_EBUSY, "process %ld runs the tasks of this file", process);
    return tw__store_db_refuse(
        db, TW_EBUSY,
        "process %ld runs the tasks of this file, of %s alone: run all queues of a file in one process",
        process, shown);
}

/* Who may write the store's file may write this one, whatever the umask says, and if root made it, too. SQLite
 * does the same with its log. A file in use has been shared already. */
static void share(int fd, const struct stat *status, const struct stat *like)
{
    if (status->st_size > 0)
        return;
    if (fchmod(fd, like->st_mode & 0777) != 0 ||
        (geteuid() == 0 &&
         fchown(fd, like->st_uid, like->st_gid) != 0)) { /* whoever may not open it, is told */
    }
}

int tw__store_lock_take(struct tw__store_db *db, const char *queues, struct tw__store_lock *lock)
{
    const char *of = sqlite3_db_filename(db->db, "main");
    char path[TW__STORE_PATH], text[24 + TW__STORE_RUN_TEXT];
    struct stat like = {.st_mode = 0600}, status = {.st_size = 0};
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    name_lock(db, path);
    stat(of, &like);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, like.st_mode & 0777);
    if (fd < 0)
        return system_failed(db, path);
    if (fstat(fd, &status) == 0)
        share(fd, &status, &like);
    if (fcntl(fd, F_OFD_SETLK, &whole) != 0) {
        int error = errno == EAGAIN || errno == EACCES ? held_by_other(db, fd) : system_failed(db, path);
        close(fd);
        return error;
    }
    int size = snprintf(text, sizeof text, "%ld\n%s%s", (long)getpid(), queues, queues[0] != '\0' ? "\n" : "");
    if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)size, 0) != size) { /* for people: it may fail */
    }
    *lock = (struct tw__store_lock){fd, {status.st_dev, status.st_ino}};
    return 0;
}

void tw__store_lock_release(struct tw__store_lock *lock)
{
    if (lock->fd >= 0)
        close(lock->fd);
    lock->fd = -1;
}

int64_t tw__store_lock_holder(struct tw__store_db *db)
{
    char path[TW__STORE_PATH], text[24] = "";
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    name_lock(db, path);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return errno == ENOENT ? 0 : -1;
    bool held = fcntl(fd, F_OFD_GETLK, &whole) != 0 || whole.l_type != F_UNLCK;
    int64_t process = held && pread(fd, text, sizeof text - 1, 0) > 0 ? strtol(text, NULL, 10) : 0;
    close(fd);
    return held && process <= 0 ? -1 : process;
}

int tw__store_lock_check(struct tw__store_db *db, const struct tw__store_lock *lock)
{
    char path[TW__STORE_PATH];
    struct stat there;
    name_lock(db, path);
    bool known = lstat(path, &there) == 0;
    if (known ? lock->file.inode == 0 || (lock->file.device == there.st_dev && lock->file.inode == there.st_ino)
              : errno != ENOENT && errno != ENOTDIR)
        return 0;
    return tw__store_db_refuse(db, TW_EREPLACED, "%.400s was removed, and the lock of this run with it", path);
}
