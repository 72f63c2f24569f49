#!/usr/bin/env bash
# One agent turn on the work tree in the current directory, as edit tools and a shell would leave it.
# usage: turn.sh N      N goes into the text, so that no two turns write the same bytes
#
# 10 files edited, 2 created, 1 deleted, 1 moved, 1 given another mode; a CRLF file, `.env` and an untracked file edited;
# an empty directory removed; an ignored file added. Goes through even if an earlier restore lost some of these files.
set -eu
turn=${1:?which turn}

mapfile -t files < <(git ls-files | grep -v '[" ]' | grep -E '\.(rs|ts|py|go)$' | awk 'NR % 7 == 3' | head -n 13)
for file in "${files[@]:0:10}"; do
    echo "// turn $turn edit" >>"$file"
done
mkdir -p agent_new
echo one >agent_new/one.txt
echo two >agent_new/two.txt
rm -f "${files[10]}"
if [ -e "${files[11]}" ]; then mv "${files[11]}" "${files[11]}.moved"; fi
if [ -e "${files[12]}" ]; then chmod 640 "${files[12]}"; fi

echo dos >>dos.txt
echo "EDITED $turn" >>.env
echo "mine $turn" >>untracked_a.txt
if [ -d empty_dir ]; then rmdir empty_dir; fi
echo z >ignored/new.bin
