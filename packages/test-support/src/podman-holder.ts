/**
 * Runs in the mount and network namespace of a Podman, whose folder is `$1`, and keeps them until its input ends, which
 * is when the test process closes it or dies. Then it removes what is left: the service, containers with their
 * monitors, the folder.
 */
export const holderScript = `
folder=$1
mount -t tmpfs tmpfs /run && mkdir -p /run/lock && mount -t tmpfs tmpfs /dev/shm && ip link set lo up || exit 1
echo ready $$
cat > /dev/null
for file in $(grep -lsF "$folder/podman.sock" /proc/[0-9]*/cmdline); do
  pid=\${file#/proc/} pid=\${pid%/cmdline}
  tr '\\0' ' ' < "$file" | grep -qE '^[^ ]*podman .*system service' && kill -9 "$pid"
done
podman --root "$folder/root" --runroot "$folder/runroot" --storage-driver vfs rm --all --force --time 0
# What is left of containers that could not be removed: their processes are children of their monitors.
for file in $(grep -lsF "$folder/" /proc/[0-9]*/cmdline); do
  pid=\${file#/proc/} pid=\${pid%/cmdline}
  tr '\\0' ' ' < "$file" | grep -qE '^[^ ]*conmon ' && kill -9 $(cat /proc/$pid/task/*/children) "$pid"
done
grep -F " $folder/" /proc/self/mounts | cut -d " " -f 2 | tac | while read -r mount; do umount -l "$mount"; done
rm -rf "$folder"
for cgroup in /sys/fs/cgroup/libpod_parent /sys/fs/cgroup/*/libpod_parent; do
  [ ! -d "$cgroup" ] || find "$cgroup" -depth -type d -exec rmdir {} +
done
`;
