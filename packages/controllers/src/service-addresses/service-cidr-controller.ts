import { BlockList, isIPv6 } from 'node:net';
import {
  addFinalizer,
  type ControllerDefinition,
  patchStatus,
  type ReconcileRun,
  relatedKind,
  removeFinalizer,
  withCondition,
} from '@keelson/controller-kit';
import { addressManagerLabel, IPAddress, ServiceCIDR, serviceAddressManager, serviceCidrReady } from '@keelson/kinds';

const finalizer = 'networking.k8s.io/service-cidr-finalizer';
/** Time in which every server learns that it must allocate no more addresses of a network that is being deleted. */
const graceMs = 10_000;

/**
 * Declares ServiceCIDRs ready, and keeps one that is being deleted while services have addresses of it that belong to
 * no other ServiceCIDR. Rules and texts are those of kube-controller-manager.
 */
export const serviceCidrController: ControllerDefinition<ServiceCIDR> = {
  name: 'service-cidr-controller',
  kind: ServiceCIDR,
  related: [
    // Another network may contain the addresses that keep one.
    relatedKind(ServiceCIDR, (_object, _before, read) => deletingNames(read)),
    relatedKind(IPAddress, (_object, _before, read) => deletingNames(read), { metadataOnly: true }),
  ],
  reconcile: async (object, run) => {
    const { deletionTimestamp } = object.metadata;
    if (deletionTimestamp === undefined) {
      const protectedObject = await addFinalizer(run, ServiceCIDR, object, finalizer);
      await setReady(run, protectedObject, 'True', '', 'Kubernetes Service CIDR is ready');
      return undefined;
    }
    if (isNeeded(object, run)) {
      const message =
        'There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR';
      await setReady(run, object, 'False', 'Terminating', message);
      return undefined;
    }
    const againAfterMs = graceMs - (run.clock.now() - Date.parse(deletionTimestamp));
    if (againAfterMs > 0) return { againAfterMs };
    await removeFinalizer(run, ServiceCIDR, object, finalizer);
    return undefined;
  },
};

function deletingNames(read: ReconcileRun['read']): string[] {
  return read(ServiceCIDR)
    .list()
    .flatMap(({ metadata: { name, deletionTimestamp } }) => (deletionTimestamp === undefined ? [] : [name]));
}

async function setReady(
  run: ReconcileRun,
  object: ServiceCIDR,
  status: 'True' | 'False',
  reason: string,
  message: string,
): Promise<void> {
  const known = object.status?.conditions ?? [];
  // The server that creates the default object has declared it ready, with a text of its own.
  if (
    status === 'True' &&
    known.some((condition) => condition.type === serviceCidrReady && condition.status === status)
  )
    return;
  const conditions = withCondition(known, { type: serviceCidrReady, status, reason, message }, run.clock);
  await patchStatus(run, ServiceCIDR, object, { conditions: [...conditions] });
}

/** True when a service has an address of these networks that no ServiceCIDR contains which stays. */
function isNeeded(object: ServiceCIDR, { read }: ReconcileRun): boolean {
  const own = networksOf([object]);
  const others = networksOf(
    read(ServiceCIDR)
      .list()
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined),
  );
  return read(IPAddress)
    .by(managedBy, serviceAddressManager)
    .some(({ metadata: { name } }) => contains(own, name) && !contains(others, name));
}

/** Index of addresses by what creates and deletes them. */
function managedBy({ metadata }: IPAddress): readonly string[] {
  const manager = metadata?.labels?.[addressManagerLabel];
  return manager === undefined ? [] : [manager];
}

function networksOf(objects: readonly ServiceCIDR[]): BlockList {
  const networks = new BlockList();
  for (const { spec } of objects)
    for (const cidr of spec.cidrs ?? []) {
      const [address = '', bits] = cidr.split('/');
      networks.addSubnet(address, Number(bits), typeOf(address));
    }
  return networks;
}

const contains = (networks: BlockList, address: string): boolean => networks.check(address, typeOf(address));
const typeOf = (address: string) => (isIPv6(address) ? 'ipv6' : 'ipv4');
