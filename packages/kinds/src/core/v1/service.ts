import { type Column, defineKind, type KindDefinition } from '@keelson/core';
import { ageColumn, column, labelsText, nameColumn, wide } from '../../columns/columns.ts';
import { addressesText } from '../../columns/load-balancer.ts';
import { warnOfBalancerAddresses } from '../../validation/address-warnings.ts';
import { ServiceSchema, type Service as ServiceType } from './schema/index.ts';
import { defaultService } from './service/default-service.ts';
import { serviceProxySubresource } from './service/proxy.ts';
import { completeAddresses, dropForeign, keepAllocated } from './service/service-update.ts';
import { serviceWarnings } from './service/service-warnings.ts';
import { validateService, validateServiceStatus, validateServiceUpdate } from './service/validate-service.ts';

const columns: readonly Column<ServiceType>[] = [
  nameColumn(),
  column('Type', 'string', 'How the service is reached.', (service) => service.spec.type ?? ''),
  column(
    'Cluster-IP',
    'string',
    'Address inside the cluster.',
    ({ spec }) => spec.clusterIPs?.[0] || spec.clusterIP || '<none>',
  ),
  column('External-IP', 'string', 'Address outside the cluster.', externalText),
  column('Port(s)', 'string', 'Ports, with node ports and protocols.', portsText),
  ageColumn,
  wide('Selector', 'string', 'Labels of its pods.', (service) => labelsText(service.spec.selector)),
];

/**
 * A stable name and address for a changing set of pods. The kind does not allocate addresses and node ports; the server
 * does.
 */
export const Service: KindDefinition<ServiceType> = defineKind({
  group: '',
  version: 'v1',
  kind: 'Service',
  names: { shortNames: ['svc'], categories: ['all'] },
  schema: ServiceSchema,
  strategy: {
    nameRule: 'dns1035Label',
    generation: 'none',
    allowCreateOnUpdate: true,
    deleteReturnsObject: true,
    default: defaultService,
    prepareForCreate: ({ spec }) => completeAddresses(spec),
    prepareForUpdate(service, old) {
      keepAllocated(service, old);
      completeAddresses(service.spec, old.spec);
      dropForeign(service, old);
    },
    prepareForStatusUpdate({ status }, _old, { warn }) {
      warnOfBalancerAddresses(status?.loadBalancer, warn);
    },
    validate: validateService,
    validateUpdate: validateServiceUpdate,
    validateStatusUpdate: validateServiceStatus,
    warnings: serviceWarnings,
    export: exportService,
  },
  subresources: [{ type: 'status', name: 'status' }, serviceProxySubresource],
  selectableFields: [
    ['spec.clusterIP', (service) => service.spec.clusterIP ?? ''],
    ['spec.type', (service) => service.spec.type ?? ''],
  ],
  columns,
});
export type Service = ServiceType;

/** Removes the values that are specific to a cluster: allocated addresses and node ports, and the status. */
function exportService(service: ServiceType, exact: boolean): void {
  service.status = { loadBalancer: {} };
  if (exact) return;
  const { spec } = service;
  if (spec.clusterIP !== 'None') {
    delete spec.clusterIP;
    delete spec.clusterIPs;
  }
  if (spec.type === 'NodePort') for (const port of spec.ports ?? []) delete port.nodePort;
}

function externalText({ spec, status }: ServiceType): string {
  const own = spec.externalIPs ?? [];
  switch (spec.type) {
    case 'ClusterIP':
    case 'NodePort':
      return own.length > 0 ? own.join(',') : '<none>';
    case 'LoadBalancer': {
      const balancer = addressesText(status?.loadBalancer);
      const all = [...(balancer ? [balancer] : []), ...own];
      return all.length > 0 ? all.join(',') : '<pending>';
    }
    case 'ExternalName':
      return spec.externalName ?? '';
    default:
      return '<unknown>';
  }
}

function portsText({ spec }: ServiceType): string {
  const ports = (spec.ports ?? []).map(
    (port) => `${port.port}${port.nodePort ? `:${port.nodePort}` : ''}/${port.protocol ?? 'TCP'}`,
  );
  return ports.length > 0 ? ports.join(',') : '<none>';
}
