/**
 * Waits for the end of its input and then removes everything of a containerd: processes that have its folder in their
 * command line (the daemon, its shims) with their children (the containers), mounts, cgroups, the bridge `$2` and the
 * folder `$1`.
 */
export const cleanUpScript = `
read -r word
folder=$1 bridge=$2
for round in 1 2 3; do
  for file in $(grep -lsF "$folder/" /proc/[0-9]*/cmdline); do
    pid=\${file#/proc/} pid=\${pid%/cmdline}
    [ "$pid" = $$ ] && continue
    tr '\\0' ' ' < "$file" | grep -qE '^[^ ]*containerd' || continue
    kill -9 $(cat /proc/$pid/task/*/children) $pid
  done
done
for id in $(ls "$folder"/state/io.containerd.runtime.v2.task/k8s.io); do
  for cgroup in /sys/fs/cgroup/k8s.io/$id /sys/fs/cgroup/*/k8s.io/$id; do
    for round in 1 2 3 4 5 6 7 8 9; do [ ! -d "$cgroup" ] || rmdir "$cgroup" || sleep 0.1; done
  done
done
rmdir /sys/fs/cgroup/k8s.io /sys/fs/cgroup/*/k8s.io
while mount=$(grep -F " $folder/" /proc/self/mounts | tail -n 1 | cut -d ' ' -f 2) && [ -n "$mount" ]; do
  umount -l "$mount" || break
done
ip link delete "$bridge"
rm -rf "$folder"
`;
