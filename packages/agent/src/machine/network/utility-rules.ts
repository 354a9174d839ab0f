/** Tables of the packet filter that have chains for others. */
export type Table = 'nat' | 'filter';

export interface Chain {
  readonly table: Table;
  readonly name: string;
}

/** One rule, in the words of iptables, in the order in which it prints them. */
export interface Rule extends Chain {
  readonly words: readonly string[];
  /** Jumps out of the kernel's own chains come before what others have there. */
  readonly first: boolean;
}

/** Names that proxies of this field look for. */
const markDrop = 'KUBE-MARK-DROP';
const markMasquerade = 'KUBE-MARK-MASQ';
const postrouting = 'KUBE-POSTROUTING';
const firewall = 'KUBE-FIREWALL';

export const utilityChains: readonly Chain[] = [
  { table: 'nat', name: markDrop },
  { table: 'nat', name: markMasquerade },
  { table: 'nat', name: postrouting },
  { table: 'filter', name: firewall },
];

/** A bit of the packet mark, as value and mask: other bits are other people's. */
export function markOf(bit: number): string {
  const value = `0x${(2 ** bit).toString(16)}`;
  return `${value}/${value}`;
}

const comment = (text: string): string[] => ['-m', 'comment', '--comment', text];

/**
 * The rules for these bits: whoever wants a packet dropped or masqueraded jumps to a chain that marks it, and it is
 * done at the end of its way.
 */
export function utilityRules(dropBit: number, masqueradeBit: number): readonly Rule[] {
  const drop = markOf(dropBit);
  const masquerade = markOf(masqueradeBit);
  const toFirewall = { table: 'filter', words: ['-j', firewall], first: true } as const;
  return [
    { table: 'nat', name: markDrop, words: ['-j', 'MARK', '--set-xmark', drop], first: false },
    {
      table: 'filter',
      name: firewall,
      words: [
        ...comment('kubernetes firewall for dropping marked packets'),
        '-m',
        'mark',
        '--mark',
        drop,
        '-j',
        'DROP',
      ],
      first: false,
    },
    { ...toFirewall, name: 'OUTPUT' },
    { ...toFirewall, name: 'INPUT' },
    { table: 'nat', name: markMasquerade, words: ['-j', 'MARK', '--set-xmark', masquerade], first: false },
    {
      table: 'nat',
      name: postrouting,
      words: [
        ...comment('kubernetes service traffic requiring SNAT'),
        '-m',
        'mark',
        '--mark',
        masquerade,
        '-j',
        'MASQUERADE',
      ],
      first: false,
    },
    {
      table: 'nat',
      name: 'POSTROUTING',
      words: [...comment('kubernetes postrouting rules'), '-j', postrouting],
      first: true,
    },
  ];
}
