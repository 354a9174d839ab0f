/** PATH of plugins and other programs of the network, which call iptables, ip and similar programs. */
export const programPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
