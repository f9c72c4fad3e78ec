# Sends a mail with net/smtp: ruby send.rb HOST PORT RECIPIENT SUBJECT
require "net/smtp"

host, port, to, subject = ARGV
Net::SMTP.start(host, Integer(port)) do |smtp|
  smtp.send_message("From: app@client.example\r\nTo: #{to}\r\nSubject: #{subject}\r\n\r\nHello.\r\n", "app@client.example", to)
end
