/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folder.h - a folder of its own for a round, on the disk that is measured.
 */
#ifndef BENCH_FOLDER_H
#define BENCH_FOLDER_H

enum { FOLDER_PATH_SIZE = 512 };

/* Make one in parent, or the end of the program. */
void folder_make(const char *parent, char path[FOLDER_PATH_SIZE]);

/* Remove it with everything in it. */
void folder_remove(const char *path);

/* Copy its files, not its folders, to target, which is made. All is on disk when it returns. */
void folder_copy(const char *path, const char *target);

/* Bytes that the file system of a folder has left; 0 where there is none. */
unsigned long long folder_room(const char *path);

/* Ask the kernel to forget what it caches of the files in it. */
void folder_evict(const char *path);

/* Bytes on disk of the files in it. */
unsigned long long folder_bytes(const char *path);

#endif
