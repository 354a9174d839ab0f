import { requiredText, type ValueType, valueType } from '@keelson/core/internal';
import {
  AddressRange,
  defaultClusterIpRange,
  defaultNodePortRange,
  parsePortRange,
  type ServiceServerOptions,
} from '../service-addresses/address-range.ts';
import type { Declared } from './option-types.ts';

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

export const serviceOptions: {
  readonly [K in keyof ServiceServerOptions]-?: Declared<ServiceServerOptions[K]>;
} = {
  serviceClusterIpRange: {
    flag: '--service-cluster-ip-range',
    variable: 'KEELSON_SERVICE_CLUSTER_IP_RANGE',
    type: clusterIpRange,
    default: defaultClusterIpRange,
    help: 'network of the cluster IPs of services; the same on all servers. For pods with a network of their own use one outside of 127.0.0.0/8, e.g. 10.96.0.0/16',
  },
  serviceNodePortRange: {
    flag: '--service-node-port-range',
    variable: 'KEELSON_SERVICE_NODE_PORT_RANGE',
    type: nodePortRange,
    default: defaultNodePortRange,
    help: 'range of the node ports of services; the same on all servers',
  },
};
