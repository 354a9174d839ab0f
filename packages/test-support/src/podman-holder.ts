/**
 * Runs in the mount and network namespace of a Podman, whose folder is `$1`, and keeps both until its input ends: the
 * test process has closed it or has died. Then it removes the service, containers with their monitors, and the folder.
 * Its line of output contains its process id and the storage driver: `overlay` where the kernel mounts it, which halves
 * the processor time of a container, else `vfs`.
 */
export const holderScript = `
folder=$1
mount -t tmpfs tmpfs /run && mkdir -p /run/lock && mount -t tmpfs tmpfs /dev/shm && ip link set lo up || exit 1
# GET /info asks the package manager for the packages of conmon and runc: 80 ms of processor time for each engine.
[ ! -e /usr/bin/dpkg-query ] || mount --bind /bin/true /usr/bin/dpkg-query || exit 1
driver=vfs probe=$folder/probe
mkdir -p "$probe/lower" "$probe/upper" "$probe/work" "$probe/merged"
if mount -t overlay overlay -o "lowerdir=$probe/lower,upperdir=$probe/upper,workdir=$probe/work" "$probe/merged"; then
  umount "$probe/merged"
  driver=overlay
fi
rm -rf "$probe"
echo ready $$ $driver
cat > /dev/null
for file in $(grep -lsF "$folder/podman.sock" /proc/[0-9]*/cmdline); do
  pid=\${file#/proc/} pid=\${pid%/cmdline}
  tr '\\0' ' ' < "$file" | grep -qE '^[^ ]*podman .*system service' && kill -9 "$pid"
done
podman --root "$folder/root" --runroot "$folder/runroot" --storage-driver $driver rm --all --force --time 0
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
