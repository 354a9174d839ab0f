import { bool, requiredText, textType, type ValueType, valueType, wrongValue } from '@keelson/core/internal';
import {
  AddressRange,
  defaultClusterIpRange,
  defaultNodePortRange,
  parsePortRange,
  type ServiceServerOptions,
} from '../service-addresses/address-range.ts';
import { type Declared, listenAddress } from './option-types.ts';
import type { ListenAddress } from './options.ts';

const clusterIpRange: ValueType<string> = valueType('CIDR[,CIDR]', (raw, source) => {
  const text = requiredText(raw, source);
  for (const range of text.split(',')) new AddressRange(range, source);
  return text;
});

const nodePortRange: ValueType<string> = valueType('PORT-PORT', (raw, source) => {
  const text = requiredText(raw, source);
  parsePortRange(text, source);
  return text;
});

/** The options of `keelson up` about serving services. */
export interface ServiceUpOptions {
  /** Serve services and Ingresses in this process. Undefined: the default of the command. */
  readonly serviceProxy?: boolean;
  /** Address for Ingresses. Undefined: {@link defaultIngressListen}, or a port chosen by the system if it is in use. */
  readonly ingressListen?: ListenAddress | 'off';
  /** Address of the DNS server for pods. Undefined: port 53 of the tenth address of the range of cluster addresses. */
  readonly clusterDnsListen?: ListenAddress | 'off';
  readonly clusterDomain: string;
}

/** The default address for Ingresses. Its port is above 1023, so that every user may listen on it. */
export const defaultIngressListen: ListenAddress = { host: '127.0.0.1', port: 8080 };

const listenOrOff: ValueType<ListenAddress | 'off'> = {
  ...listenAddress,
  parse: (text, source) => (text === 'off' ? 'off' : listenAddress.parse(text, source)),
  fromFile: (raw, source, directory) => (raw === 'off' ? 'off' : listenAddress.fromFile(raw, source, directory)),
  format: (value) => (value === 'off' ? 'off' : listenAddress.format(value)),
};

export const serviceOptions: {
  readonly [K in keyof (ServiceServerOptions & ServiceUpOptions)]-?: Declared<
    (ServiceServerOptions & ServiceUpOptions)[K] | undefined
  >;
} = {
  serviceClusterIpRange: {
    flag: '--service-cluster-ip-range',
    variable: 'KEELSON_SERVICE_CLUSTER_IP_RANGE',
    type: clusterIpRange,
    default: undefined,
    shownDefault: `${defaultClusterIpRange}, or with up the first of 127.96.0.0/16 to 127.111.0.0/16 that is free`,
    help: 'network of the cluster IPs of services; the same on all servers. For pods with a network of their own use one outside of 127.0.0.0/8, e.g. 10.96.0.0/16',
  },
  serviceNodePortRange: {
    flag: '--service-node-port-range',
    variable: 'KEELSON_SERVICE_NODE_PORT_RANGE',
    type: nodePortRange,
    default: defaultNodePortRange,
    help: 'range of the node ports of services; the same on all servers',
  },
  serviceProxy: {
    flag: '--service-proxy',
    variable: 'KEELSON_SERVICE_PROXY',
    type: bool,
    default: undefined,
    shownDefault: 'true with up',
    help: 'keelson up only: serve cluster IPs, node ports and Ingresses in this process',
  },
  ingressListen: {
    flag: '--ingress-listen',
    variable: 'KEELSON_INGRESS_LISTEN',
    type: listenOrOff,
    default: undefined,
    shownDefault: '127.0.0.1:8080 with up, or a free port if that is in use',
    help: 'keelson up only: address on which Ingresses are served, HTTP and HTTPS on one port; off serves none',
  },
  clusterDnsListen: {
    flag: '--cluster-dns-listen',
    variable: 'KEELSON_CLUSTER_DNS_LISTEN',
    type: listenOrOff,
    default: undefined,
    shownDefault: '127.96.0.10:53 with up, the tenth address of the first range',
    help: 'keelson up only: address of the DNS server for names of services; pods use it if the port is 53; off disables it',
  },
  clusterDomain: {
    flag: '--cluster-domain',
    variable: 'KEELSON_CLUSTER_DOMAIN',
    type: textType('DOMAIN', (text, source) => {
      if (/^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/.test(text)) return text;
      throw wrongValue(source, 'a domain in lower case without a dot at its end', text);
    }),
    default: 'cluster.local',
    help: 'keelson up only: domain of the names of services',
  },
};
