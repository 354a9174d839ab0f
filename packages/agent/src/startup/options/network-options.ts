import { labelMap, stringSlice } from './list-types.ts';
import { option } from './option.ts';
import { bool, duration, int32, text } from './scalar-types.ts';
import { taintList } from './taint-type.ts';

const none = { shownDefault: 'none' };

export const networkOptions = [
  option(
    'cluster-dns',
    stringSlice,
    [],
    'DNS servers of pods with dnsPolicy ClusterFirst; all serve the same records.',
    none,
  ),
  option('cluster-domain', text, '', "Search domain of containers, besides the host's.", none),
  option('resolv-conf', text, '/etc/resolv.conf', 'File that DNS configuration of containers is made from.'),
  option('cni-bin-dir', text, '/opt/cni/bin', 'Directories of network plugin binaries, separated by commas.'),
  option(
    'cni-conf-dir',
    text,
    '/etc/cni/net.d',
    'Directory of network configurations; the first usable by name counts.',
  ),
  option(
    'network-plugin',
    text,
    '',
    'What connects pods: empty (the runtime itself), cni, or bridge (kubenet means the same), which needs no configuration.',
    none,
  ),
  option('network-plugin-mtu', int32, 0, 'MTU of the plugin bridge; 0 is 1460.', none),
  option(
    'hairpin-mode',
    text,
    'promiscuous-bridge',
    'How a pod reaches itself through a service: promiscuous-bridge, hairpin-veth or none.',
  ),
  option('pod-cidr', text, '', 'Addresses of pods, on a node without API server.', none),
  option('make-iptables-util-chains', bool, true, 'Keeps chains of iptables rules that others use.'),
  option('iptables-drop-bit', int32, 15, 'Bit of the packet mark for dropping, from 0 to 31.'),
  option(
    'iptables-masquerade-bit',
    int32,
    14,
    'Bit of the packet mark for SNAT, from 0 to 31; the same as in the proxy.',
  ),
  option('node-ip', text, '', 'IP address of the node.', none),
  option('hostname-override', text, '', 'Name of the node in place of the host name.', none),
  option(
    'node-labels',
    labelMap,
    new Map() as ReadonlyMap<string, string>,
    'Labels at registration, key=value separated by commas.',
    none,
  ),
  option('node-status-update-frequency', duration, 10_000, "How often the node's status is posted."),
  option('provider-id', text, '', "The machine's name in a database of machines.", none),
  option('register-node', bool, true, 'Registers the node with the API server.'),
  option('register-with-taints', taintList, [], 'Taints at registration, key=value:effect separated by commas.', none),
  option(
    'cloud-provider',
    text,
    '',
    'What knows the machine: empty (nobody), external, file, or a provider that a program brings.',
    none,
  ),
  option('cloud-config', text, '', 'Configuration of the cloud provider.', none),
  option('cluster-api-qps', int32, 5, 'Requests to the API server per second in the long run.'),
  option('cluster-api-burst', int32, 10, 'Requests to the API server at once after a pause.'),
  option(
    'cluster-api-content-type',
    text,
    'application/vnd.kubernetes.protobuf',
    'Content type of requests to the API server.',
  ),
] as const;
