/* SPDX-License-Identifier: Apache-2.0 */
/*
 * standalone_driver.c - replays a corpus through a fuzzer, without libFuzzer.
 *
 * Every finding becomes a file of the corpus, so that the ordinary suite, under any
 * compiler and sanitizer, keeps it fixed. Prints TAP: one test, which a crash leaves
 * unanswered; the last "#" line then names the input.
 *
 *	fuzz_record fuzz/corpus/fuzz_record    all files of the folder, by name
 *	fuzz_record FILE...                    just these
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* libFuzzer's entry; also called with no bytes at all, which is an input like any other. */
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

enum { INPUT_SIZE_MAX = 16 << 20 };

static int replay_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	unsigned char *data = malloc(INPUT_SIZE_MAX);
	int failed = 1;

	printf("# %s\n", path);
	if (!file || !data)
		goto out;
	size_t size = fread(data, 1, INPUT_SIZE_MAX, file);
	if (ferror(file) || !feof(file))
		goto out;

	/* An exact copy: a read past its end is then one that a sanitizer sees. */
	unsigned char *exact = malloc(size ? size : 1);
	if (!exact)
		goto out;
	if (size)
		memcpy(exact, data, size);
	failed = LLVMFuzzerTestOneInput(exact, size) != 0;
	free(exact);
out:
	free(data);
	if (file)
		fclose(file);
	if (failed)
		printf("# failed: %s\n", path);
	return failed;
}

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static int replay_folder(const char *path, int *count)
{
	struct dirent **entries;
	int entry_count = scandir(path, &entries, is_visible, alphasort);
	int failed = 0;

	if (entry_count < 0) {
		printf("# cannot read: %s\n", path);
		return 1;
	}
	for (int i = 0; i < entry_count; i++) {
		char file[4096];

		snprintf(file, sizeof(file), "%s/%s", path, entries[i]->d_name);
		failed += replay_file(file);
		free(entries[i]);
	}
	free(entries);
	*count += entry_count;
	return failed;
}

int main(int argc, char **argv)
{
	int count = 0;
	int failed = 0;

	/* Line by line, so that the name of the input that crashes is not lost. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("1..1");
	LLVMFuzzerTestOneInput((const unsigned char *)"", 0);
	for (int i = 1; i < argc; i++) {
		struct stat status;

		if (stat(argv[i], &status) == 0 && S_ISDIR(status.st_mode)) {
			failed += replay_folder(argv[i], &count);
		} else {
			failed += replay_file(argv[i]);
			count++;
		}
	}
	printf("# %d inputs\n", count);
	/* A fuzzer without a corpus is a mistake in the tree. */
	printf("%s 1 - corpus\n", failed || !count ? "not ok" : "ok");
	return failed || !count;
}
