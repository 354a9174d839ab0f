import { randomInt } from 'node:crypto';
import { join } from 'node:path';

export interface ContainerdPlaces {
  readonly folder: string;
  readonly socket: string;
  readonly pauseImage: string;
}

/**
 * The configuration of a daemon with all files below one folder. Scores of the out-of-memory killer stay within what an
 * unprivileged process may set; otherwise no sandbox starts in a container or a small virtual machine.
 */
export function containerdConfig({ folder, socket, pauseImage }: ContainerdPlaces): string {
  const cri = 'plugins."io.containerd.grpc.v1.cri"';
  const unused = ['aufs', 'btrfs', 'devmapper', 'zfs'].map((name) => `"io.containerd.snapshotter.v1.${name}"`);
  return `version = 2
root = "${join(folder, 'root')}"
state = "${join(folder, 'state')}"
disabled_plugins = [${unused.join(', ')}, "io.containerd.internal.v1.opt", "io.containerd.nri.v1.nri", "io.containerd.internal.v1.tracing"]
[grpc]
  address = "${socket}"
[${cri}]
  sandbox_image = "${pauseImage}"
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [${cri}.containerd]
    snapshotter = "overlayfs"
    [${cri}.containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [${cri}.containerd.runtimes.runc.options]
        Root = "${join(folder, 'runc')}"
  [${cri}.cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "${join(folder, 'net.d')}"
`;
}

/** A network of addresses that are for benchmarks only, on a bridge without a gateway. */
export function bridgeNetwork(bridge: string, folder: string): string {
  const subnet = `198.${18 + randomInt(2)}.${randomInt(256)}.0/24`;
  const ipam = { type: 'host-local', dataDir: join(folder, 'addresses'), ranges: [[{ subnet }]] };
  return JSON.stringify({ cniVersion: '0.4.0', name: bridge, plugins: [{ type: 'bridge', bridge, ipam }] });
}
