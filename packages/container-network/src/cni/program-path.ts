/** Where the programs are that plugins, and what is beside them, call: iptables, ip and the like. */
export const programPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
