// Sends a mail with net/smtp: go run send.go HOST PORT RECIPIENT SUBJECT
package main

import (
	"fmt"
	"net"
	"net/smtp"
	"os"
)

func main() {
	host, port, to, subject := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	message := fmt.Sprintf("From: app@client.example\r\nTo: %s\r\nSubject: %s\r\n\r\nHello.\r\n", to, subject)
	err := smtp.SendMail(net.JoinHostPort(host, port), nil, "app@client.example", []string{to}, []byte(message))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
