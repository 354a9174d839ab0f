import { bool, duration, text } from '@keelson/core/internal';
import { option } from './option.ts';
import { taintList } from './taint-type.ts';
import { int32, labelMap, stringSlice } from './value-types.ts';

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
  option('resolv-conf', text, '/etc/resolv.conf', 'File that the DNS configuration of containers is derived from.'),
  option('cni-bin-dir', text, '/opt/cni/bin', 'Directories of network plugin binaries, separated by commas.'),
  option(
    'cni-conf-dir',
    text,
    '/etc/cni/net.d',
    'Directory of network configurations; the first valid one in the order of names is used.',
  ),
  option(
    'network-plugin',
    text,
    '',
    'Network plugin: empty (the network of the runtime), cni, or bridge (alias kubenet), which needs no configuration.',
    none,
  ),
  option('network-plugin-mtu', int32, 0, 'MTU of the plugin bridge; 0 means 1460.', none),
  option(
    'hairpin-mode',
    text,
    'promiscuous-bridge',
    'How a pod reaches itself through a service: promiscuous-bridge, hairpin-veth or none.',
  ),
  option('pod-cidr', text, '', 'Address range of pods on a node without an API server.', none),
  option('make-iptables-util-chains', bool, true, 'Maintains chains of iptables rules that other components use.'),
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
  option('provider-id', text, '', 'Identifier of the machine at its cloud provider.', none),
  option('register-node', bool, true, 'Registers the node with the API server.'),
  option('register-with-taints', taintList, [], 'Taints at registration, key=value:effect separated by commas.', none),
  option(
    'cloud-provider',
    text,
    '',
    'Provider of information about the machine: empty (none), external, file, or a provider of an embedding program.',
    none,
  ),
  option('cloud-config', text, '', 'Configuration of the cloud provider.', none),
  option('cluster-api-qps', int32, 5, 'Average limit of requests to the API server per second.'),
  option('cluster-api-burst', int32, 10, 'Maximum burst of requests to the API server.'),
  option(
    'cluster-api-content-type',
    text,
    'application/vnd.kubernetes.protobuf',
    'Content type of requests to the API server.',
  ),
] as const;
