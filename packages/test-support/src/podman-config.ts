import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * Writes the configuration of a Podman that uses only its own folder: runc, cgroups by path, and a bridge without
 * address translation.
 */
export async function writePodmanConfig(folder: string, infraImage: string): Promise<void> {
  for (const name of ['tmp', 'net.d', 'ipam']) await mkdir(join(folder, name), { recursive: true });
  await writeFile(join(folder, 'containers.conf'), containersConf(folder, infraImage));
  await writeFile(join(folder, 'registries.conf'), registriesConf);
  await writeFile(join(folder, 'net.d', '10-podman.conflist'), JSON.stringify(network(folder)));
}

/**
 * Limits of open files and processes above those of this process would need a privilege that containers of CI machines
 * lack.
 */
const containersConf = (folder: string, infraImage: string) => `
[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
lock_type = "file"
tmp_dir = "${folder}/tmp"
infra_image = "${infraImage}"
[network]
network_backend = "cni"
network_config_dir = "${folder}/net.d"
cni_plugin_dirs = ["/usr/lib/cni"]
`;

const registriesConf = `
unqualified-search-registries = []
[[registry]]
location = "127.0.0.1"
insecure = true
`;

const network = (folder: string) => ({
  cniVersion: '0.4.0',
  name: 'podman',
  plugins: [
    {
      ...{ type: 'bridge', bridge: 'podman0', isGateway: true, ipMasq: false, hairpinMode: true },
      ipam: {
        ...{ type: 'host-local', dataDir: join(folder, 'ipam'), routes: [{ dst: '0.0.0.0/0' }] },
        ranges: [[{ subnet: '10.88.0.0/16', gateway: '10.88.0.1' }]],
      },
    },
    { type: 'portmap', capabilities: { portMappings: true } },
  ],
});
